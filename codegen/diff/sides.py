"""The two sides of a comparison: a folder or a git revision -> the protocols of its spec."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from codegen.model.model import Protocol
from codegen.model.places import Place, SpecError
from codegen.model.reader import PROTOCOL_FILE, TYPES_FILE, load
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
    base: str = ""
    """The temporary folder of a revision."""

    def shown(self, place: Place) -> str:
        """Return a place for a terminal: `spec/logicalrep/update.yaml:12:7`."""
        return f"{str(place.path).removeprefix(self.base)}:{place.line}:{place.column or 1}"


def read_side(name: str | None, repository: Path) -> Side:
    """Load the side of a name; None for the working tree. Raises SideError if that fails."""
    if name is None:
        return _load(WORKING_TREE, _spec_in(repository, str(repository)))
    folder = Path(name)
    commit = _commit(name, repository)
    if not name or not folder.is_dir():
        if commit is None:
            raise SideError(f"{name!r} is neither a folder nor a git revision in {repository}")
        return _read_revision(name, commit, repository)
    if commit is not None:
        raise SideError(f"{name!r} is both a folder and a git revision; write ./{name} or {name}^0")
    return _load(name, _spec_in(folder, name))


def _spec_in(folder: Path, name: str) -> Path:
    """Return the spec's folder: the folder itself, or spec/ in it."""
    if (folder / TYPES_FILE).is_file() or any(folder.glob(f"*/{PROTOCOL_FILE}")):
        return relative(folder)
    if (folder / FOLDER).is_dir():
        return relative(folder / FOLDER)
    raise SideError(f"folder {name!r} is not a spec and contains none: it has neither {TYPES_FILE} nor {FOLDER}/")


def _load(label: str, spec: Path, base: str = "") -> Side:
    try:
        return Side(label, load(spec), base)
    except SpecError as error:
        # Texts name files in the temporary folder too, which is removed before the texts are read.
        texts = map(str, error.findings)
        raise SideError(*(text.replace(base, "") if base else text for text in texts)) from error


def _read_revision(name: str, commit: str, repository: Path) -> Side:
    """Load a revision's spec. Reads files as git stores them, whatever attributes say about archives."""
    listing = _git(repository, "ls-tree", "-r", "-z", commit, "--", FOLDER)
    files: dict[str, str] = {}
    for entry in os.fsdecode(listing or b"").split("\0"):
        about, _, path = entry.partition("\t")
        if path.startswith(f"{FOLDER}/") and path.endswith(".yaml") and about.startswith("100"):
            files[path] = about.split()[2]
    if not files:
        raise SideError(f"revision {name!r} has no spec: there are no YAML files in {FOLDER}/")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for path, blob in files.items():
            content = _git(repository, "cat-file", "blob", blob)
            if content is None:
                raise SideError(f"git in {repository} cannot read {path} of {name!r}")
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
        return _load(f"{name} ({commit[:12]})", root / FOLDER, f"{root}{os.sep}")


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
