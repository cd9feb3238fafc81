"""Readers of stored tables, compared with PostgreSQL's rows: `python -m bench.readers [READER …] [--write]`.

The tables are replicated from a server of their own: each type in each format, marked rows, partitions, an old version.
Each reader's program runs in `build/readers/.venv`, which the command makes, with the packages of `requirements.txt`.
A filter is compared with the rows that the same reader returns for it from a copy of its full scan in memory, so that
no file can be skipped; the full scan is compared with the rows that `verify` has compared with the server's.

If a reader's process ends early, that is the result of the table which it read, and a new process reads the others.

It prints what differs; with --write it writes docs/reference/readers.md. With --keep a later call finds the tables, and
the results of readers that it does not name.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.readers.lake import make_tables
from bench.readers.page import write_page
from bench.readers.running import content_of, run_program
from conformance.server import PortServer
from logicalrep.postgres.local_server import find_installation

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / "build/readers"
_VENV = _FOLDER / ".venv"
_REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_PROGRAMS = Path(__file__).with_name("programs")
_AT_ONCE = 2
"""The readers that run at the same time."""
READERS = sorted(path.stem.removesuffix("_reader") for path in _PROGRAMS.glob("*_reader.py"))


def main() -> None:
    """Make the tables, run the readers, and print or write the results."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.readers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("readers", nargs="*", metavar="READER", help=", ".join(READERS))
    parser.add_argument("--write", action="store_true", help="write docs/reference/readers.md")
    parser.add_argument("--keep", type=Path, help="a folder that keeps the tables for the next call")
    options = parser.parse_args()
    if unknown := set(options.readers) - set(READERS):
        parser.error(f"no reader {', '.join(sorted(unknown))}; there are {', '.join(READERS)}")
    if options.write and options.readers and not options.keep:
        parser.error("the page has all readers: name none, or --keep the results of the others")
    _install()
    # Some programs change their folder.
    folder = options.keep.absolute() if options.keep else Path(tempfile.mkdtemp(prefix="logicalrep-readers-"))
    try:
        request = _request(folder)
        names = READERS if options.write else options.readers or READERS
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = list(
                pool.map(lambda name: _answer(name, request, is_asked=name in (options.readers or READERS)), names)
            )
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps([_shown(answer) for answer in answers], indent=1))
    if options.write:
        write_page(answers)


def _install() -> None:
    ready = _VENV / "requirements.txt"
    if ready.exists() and ready.read_bytes() == _REQUIREMENTS.read_bytes():
        return
    subprocess.run([sys.executable, "-P", "-m", "venv", _VENV], check=True)
    pip = [_VENV / "bin/pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-r", _REQUIREMENTS], check=True)
    shutil.copyfile(_REQUIREMENTS, ready)


def _request(folder: Path) -> Path:
    request = folder / "tables.json"
    if not request.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with PortServer(find_installation(18)) as server:
            tables = make_tables(server.dsn, folder.absolute())
        request.write_text(json.dumps([asdict(table) for table in tables]), "utf-8")
    return request


def _answer(name: str, request: Path, *, is_asked: bool) -> dict[str, Any]:
    answer = request.with_name(f"{name}.json")
    if not is_asked:
        return content_of(answer, name)
    # The reader of the project runs where the project is installed.
    python = sys.executable if name == "logicalrep" else str(_VENV / "bin/python")
    started = time.monotonic()
    content = run_program(
        name, [python, "-P", "-m", f"bench.readers.programs.{name}_reader", str(request), str(answer)], answer
    )
    print(f"{content['reader']}: {time.monotonic() - started:.0f} s", file=sys.stderr)
    return content


def _shown(answer: dict[str, Any]) -> dict[str, Any]:
    results = [{name: value for name, value in result.items() if value} for result in answer["results"]]
    return {**answer, "results": results}


if __name__ == "__main__":
    main()
