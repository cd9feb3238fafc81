"""The generator's command line: `python -m codegen regen | check | docs | diff | ksy | lua | reference …`."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from codegen import diff, fuzz, vectors
from codegen import pagecheck as docs
from codegen.emit import kaitai, wireshark
from codegen.emit.package import PACKAGE, emit, emit_native, emit_project
from codegen.emit.rendering import MARK
from codegen.model.places import SpecError
from codegen.model.reader import load, load_project
from codegen.reference import site as reference
from codegen.shared import ROOT, add_spec, relative

_GENERATED = ROOT / "generated"
_WALKS = ROOT / "native" / "src" / "walks.c"
"""The walks of `logicalrep-native`, written with the package of this project alone."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command. Exit code: 0 success, 1 stale, foreign or different files, 2 faulty input."""
    parser = argparse.ArgumentParser(prog="python -m codegen", description="From the spec to the generated package.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in (
        ("regen", "write generated/, only the files that differ, and remove the generator's own that are too many"),
        ("check", "print what regen would change, and exit 1 if it would change anything"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        add_spec(command)
        command.add_argument("--out", type=Path, default=_GENERATED, help="the folder of the package")
    for name, module, text in (
        ("docs", docs, "compare a page of PostgreSQL's documentation with the spec"),
        ("diff", diff, "print what changed in the spec for whoever uses the protocol"),
        ("fuzz", fuzz, "search for specs that the checker accepts and whose package is wrong"),
        ("ksy", kaitai, "write descriptions for the compiler of Kaitai Struct, for readers in other languages"),
        ("lua", wireshark, "write a dissector for Wireshark"),
        ("reference", reference, "write the reference, a static site"),
        ("vectors", vectors, "write test vectors for other implementations, as JSON"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    options = parser.parse_args(arguments)
    try:
        if "run" in options:
            code: int = options.run(options)
            return code
        native = ""
        if options.project is None:
            protocols = load(options.spec)
            package, wanted, native = PACKAGE, emit(protocols), emit_native(protocols)
        else:
            project = load_project(options.project)
            package, wanted = project.package, emit_project(project)
    except SpecError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    compare = _regen if options.command == "regen" else _check
    code = compare(wanted, _present(options.out, package), options.out)
    if native and options.out == _GENERATED:
        path = Path(_WALKS.name)
        present = {path: _WALKS.read_text(encoding="utf-8")} if _WALKS.exists() else {}
        code = max(code, compare({path: native}, present, _WALKS.parent))
    return code


def _present(out: Path, package: str) -> dict[Path, str]:
    """Return the package's present files; undecodable bytes are replaced."""
    return {
        path.relative_to(out): path.read_text(encoding="utf-8", errors="replace")
        for path in sorted((out / package).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def _foreign(wanted: dict[Path, str], present: dict[Path, str], out: Path) -> set[Path]:
    """Return the files that the generator has not written, after printing them."""
    foreign = {path for path in present.keys() - wanted.keys() if MARK not in present[path]}
    for path in sorted(foreign):
        print(f"{relative(out / path)}: the generator has not written it; move it out of the package", file=sys.stderr)
    return foreign


def _regen(wanted: dict[Path, str], present: dict[Path, str], out: Path) -> int:
    for path, text in sorted(wanted.items()):
        if present.get(path) != text:
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            (out / path).write_text(text, encoding="utf-8")
            print(f"wrote {relative(out / path)}")
    foreign = _foreign(wanted, present, out)
    for path in sorted(present.keys() - wanted.keys() - foreign):
        (out / path).unlink()
        print(f"removed {relative(out / path)}")
    return 1 if foreign else 0


def _check(wanted: dict[Path, str], present: dict[Path, str], out: Path) -> int:
    foreign = _foreign(wanted, present, out)
    paths = sorted((wanted.keys() | present.keys()) - foreign)
    stale = [path for path in paths if wanted.get(path) != present.get(path)]
    for path in stale:
        sys.stdout.writelines(
            difflib.unified_diff(
                present.get(path, "").splitlines(keepends=True),
                wanted.get(path, "").splitlines(keepends=True),
                f"{relative(out / path)} (as it is)",
                f"{relative(out / path)} (as the spec has it)",
            )
        )
    if stale:
        print(f"{len(stale)} stale, run `make regen`: {', '.join(str(path) for path in stale)}", file=sys.stderr)
    return 1 if stale or foreign else 0


if __name__ == "__main__":
    sys.exit(main())
