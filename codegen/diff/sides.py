"""The two sides of a comparison: a folder or a git revision -> the protocols of its spec."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from codegen.diff.accepted import Acceptance, read_accepted
from codegen.model.model import Protocol
from codegen.model.places import Place, SpecError
from codegen.model.reader import PROTOCOL_FILE, TYPES_FILE, load_either
from codegen.shared import relative

FOLDER = "spec"
"""The spec's folder in every revision of the repository."""

WORKING_TREE = "working tree"
"""The label of the repository's working tree."""


class SideError(Exception):
    """A side that cannot be loaded, with one line for each reason."""

    def __init__(self, *lines: str) -> None:
        self.lines = lines
        super().__init__("\n".join(lines))


@dataclass(frozen=True)
class Side:
    """A loaded spec and its label."""

    label: str
    protocols: tuple[Protocol, ...]
    accepted: tuple[Acceptance, ...] = ()
    base: str = ""
    """The temporary folder of a revision."""

    def shown(self, place: Place) -> str:
        """Return a place for a terminal: `spec/logicalrep/update.yaml:12:7`."""
        return f"{str(place.path).removeprefix(self.base)}:{place.line}:{place.column or 1}"


def read_side(name: str | None, repository: Path, project: Path | None = None) -> Side:
    """Load the side of a name; None for the working tree. Raises SideError if that fails.

    With another project's folder, each side is that protocol; `repository` may be the folder itself.
    """
    if name is None:
        return _load(WORKING_TREE, _spec_in(repository, str(repository), project), project)
    folder = Path(name)
    commit = _commit(name, repository)
    if not name or not folder.is_dir():
        if commit is None:
            raise SideError(f"{name!r} is neither a folder nor a git revision in {repository}")
        return _read_revision(name, commit, repository, project)
    if commit is not None:
        raise SideError(f"{name!r} is both a folder and a git revision; write ./{name} or {name}^0")
    return _load(name, _spec_in(folder, name, project), project)


def _spec_in(folder: Path, name: str, project: Path | None) -> Path:
    """Return the spec's folder: the folder itself, or spec/ in it; for another project the folder itself."""
    if project is not None:
        if (folder / PROTOCOL_FILE).is_file():
            return relative(folder)
        raise SideError(f"folder {name!r} has no {PROTOCOL_FILE}")
    if (folder / TYPES_FILE).is_file() or any(folder.glob(f"*/{PROTOCOL_FILE}")):
        return relative(folder)
    if (folder / FOLDER).is_dir():
        return relative(folder / FOLDER)
    raise SideError(f"folder {name!r} is not a spec and contains none: it has neither {TYPES_FILE} nor {FOLDER}/")


def _load(label: str, spec: Path, project: Path | None, base: str = "") -> Side:
    try:
        return Side(label, load_either(spec, spec if project is not None else None), read_accepted(spec), base)
    except SpecError as error:
        # Texts name files in the temporary folder too, which is removed before the texts are read.
        texts = map(str, error.findings)
        raise SideError(*(text.replace(base, "") if base else text for text in texts)) from error


def _read_revision(name: str, commit: str, repository: Path, project: Path | None) -> Side:
    """Load a revision's spec. Reads files as git stores them, whatever attributes say about archives."""
    prefix = f"{FOLDER}/" if project is None else ""
    listing = _git(repository, "ls-tree", "-r", "-z", commit, "--", prefix or ".")
    files: dict[str, str] = {}
    for entry in os.fsdecode(listing or b"").split("\0"):
        about, _, path = entry.partition("\t")
        if path.startswith(prefix) and path.endswith(".yaml") and about.startswith("100"):
            files[path] = about.split()[2]
    if not files:
        where = prefix or f"{repository}/"
        raise SideError(f"revision {name!r} has no spec: there are no YAML files in {where}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        # A path below the current folder is relative to the folder.
        shown = Path(FOLDER) if project is None else Path(project.name) if project.is_absolute() else project
        for path, blob in files.items():
            content = _git(repository, "cat-file", "blob", blob)
            if content is None:
                raise SideError(f"git in {repository} cannot read {path} of {name!r}")
            file = root / shown / path.removeprefix(prefix)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return _load(f"{name} ({commit[:12]})", root / shown, project, f"{root}{os.sep}")


def _commit(name: str, repository: Path) -> str | None:
    """Return the commit of a revision; None if the name is not a revision."""
    if name.startswith("-"):
        return None
    output = _git(repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return os.fsdecode(output).strip() if output is not None else None


def _git(repository: Path, *arguments: str) -> bytes | None:
    """Return git's output; None if git fails or is not installed."""
    try:
        result = subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True, check=False)
    except OSError:
        return None
    return result.stdout if result.returncode == 0 else None
