"""Words of the project: the old ones are in no name of src/, and those of docs/glossary.md are used."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.contracts.pages import PAGES

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "logicalrep"

OLD = {
    "Beside", "Followed", "Kept", "Mark", "NoSuchPlaceError", "Place", "PlaceError", "PlaceRows", "ReplicatedTable",
    "ReplicatedTables", "Report", "Several", "Watch", "_First", "_noted", "_place", "_report", "_stand_still", "_watch",
    "apply_kept", "beside", "folder_beside", "forget_kept", "noted", "watch",
    "Found", "Part", "Piece", "Places", "_Part", "_Piece", "_Pieces", "_look", "_moments", "_pieces", "_places",
    "given", "kept", "look", "mark", "moments", "piece", "pieces", "place", "places",
}  # fmt: skip
"""Names that are in no module."""
OLD_OF_TABLES = {"report"}
"""Names that are in no module of tables, where what tells what happens is an observer."""
ALLOWED = {
    "arrow/kernels/digits.py": {"places"},  # decimal places
    "arrow/kernels/timestamps.py": {"places"},  # those of a second
    "pipeline/config/nodes.py": {"mark"},  # YAML's own
}
"""Names that are the field's own there."""


def _names(path: Path) -> Iterator[str]:
    """Yield a module's names, but for those of modules in its imports."""
    with path.open("rb") as file:
        is_import = False
        for token in tokenize.tokenize(file.readline):
            if token.type in (tokenize.NEWLINE, tokenize.NL):
                is_import = False
            elif token.type == tokenize.NAME:
                is_import = is_import or token.line.lstrip().startswith(("from ", "import "))
                if not (is_import and token.string.islower()):
                    yield token.string


def test_old_words_are_in_no_name() -> None:
    found = {}
    for path in sorted(SOURCES.rglob("*.py")):
        name = path.relative_to(SOURCES).as_posix()
        old = OLD | (OLD_OF_TABLES if name.startswith("pipeline/") else set())
        if there := set(_names(path)) & old - ALLOWED.get(name, set()):
            found[name] = there
    assert found == {}


def _prose(path: Path) -> str:
    """Return a file's words with one blank between two of them, also where a text of Python is in two lines."""
    return " ".join(re.sub(r'"\s*\n\s*"', "", path.read_text("utf-8")).split())


def test_old_phrases_are_in_no_page_and_in_no_text() -> None:
    old = re.compile(r"\b(stands?|stood) still\b|\bcomes? to rest\b|\btables? beside\b|\bplace of the tables\b")
    files = [*(ROOT / page for page in PAGES if page != "CHANGELOG.md"), *SOURCES.rglob("*.py")]
    found = {path: phrase[0] for path in files if (phrase := old.search(_prose(path)))}
    assert found == {}


def test_codes_have_no_old_words() -> None:
    from logicalrep.error_codes import CODES

    assert [code for code in CODES if re.search("^PLACE|NOTE|LOOK|KEPT", code)] == []


def test_each_word_of_the_glossary_is_used() -> None:
    rows = re.findall(r"(?m)^\| ([a-zA-Z ]+) \| ", (ROOT / "docs" / "glossary.md").read_text("utf-8"))
    words = [row for row in rows if row != "word"]
    assert len(words) > 15
    assert words == sorted(words, key=str.lower)
    texts = "\n".join(path.read_text("utf-8") for path in sorted(SOURCES.rglob("*.py")))
    assert [word for word in words if not re.search(r"\b" + word.replace(" ", " ?"), texts, re.IGNORECASE)] == []
