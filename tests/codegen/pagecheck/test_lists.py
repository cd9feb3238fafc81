"""The sections of the documentation that are lists: its types, and the fields of errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codegen.__main__ import main
from tests.codegen.pagecheck.pages import ERROR_FIELDS_18, TYPES_18


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        (TYPES_18, "agrees with the list of PROTOCOL-MESSAGE-TYPES (4 terms)"),
        (ERROR_FIELDS_18, "agrees with the list of PROTOCOL-ERROR-FIELDS (18 terms)"),
    ],
    ids=["types", "fields of errors"],
)
def test_the_lists_of_the_documentation_agree(page: Path, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", str(page)]) == 0
    assert capsys.readouterr().out == f"{page}: {printed}\n"


TYPES = """<div class="sect1" id="PROTOCOL-MESSAGE-TYPES"><dl>
<dt>Int<em>n</em>(<em>i</em>)</dt><dd><p>An n-bit integer in network byte order (most significant byte first).
It is the exact value. Eg. Int16, Int32(42).</p></dd>
<dt>Int<em>n</em>[<em>k</em>]</dt><dd><p>An array of k n-bit integers, each in network byte order, as determined by an
earlier field. Eg. Int16[M].</p></dd>
<dt>String(s)</dt><dd><p>A null-terminated string; s is the exact value. Eg. String, String("user").</p></dd>
<dt>Byten(c)</dt><dd><p>Exactly n bytes, determinable from an earlier field; c is the exact value. Eg. Byte2.</p></dd>
</dl></div>"""
LETTERS = {
    "S": "Severity", "V": "Severity", "C": "Code", "M": "Message", "D": "Detail", "H": "Hint", "P": "Position",
    "p": "Internal position", "q": "Internal query", "W": "Where", "s": "Schema name", "t": "Table name",
    "c": "Column name", "d": "Data type name", "n": "Constraint name", "F": "File", "L": "Line", "R": "Routine",
}  # fmt: skip
FIELDS = (
    '<div class="sect1" id="PROTOCOL-ERROR-FIELDS"><dl>\n'
    + "".join(f"<dt>{letter}</dt><dd><p>{name}: a text.</p></dd>\n" for letter, name in LETTERS.items())
    + "</dl></div>"
)


def differences(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    page = folder / "page.html"
    page.write_text(text, "utf-8")
    code = main(["docs", str(page)])
    return code, [
        re.sub(r"^\S+: |; (codegen|spec)/\S+ has ", "|", line) for line in capsys.readouterr().out.splitlines()
    ]


@pytest.mark.parametrize("text", [TYPES, FIELDS, FIELDS[: FIELDS.index("<dt>L")]], ids=["types", "fields", "cut off"])
def test_what_agrees(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, (line,) = differences(tmp_path, text, capsys)
    assert (code, line[:17]) == (0, "|agrees with the ")


@pytest.mark.parametrize(
    ("text", "old", "new", "line"),
    [
        (TYPES, "most significant", "least significant", "|Intn(i): the page has"),
        (TYPES, "An array", "A list", "|Intn[k]: the page has"),
        (TYPES, "Byte2", "Float8", '|Byten(c): the page has "Float8"|no such type'),
        (TYPES, "Int16, ", "Int128, ", '|Intn(i): the page has "Int128"|no such type'),
        (TYPES, "<dt>String(s)", "<dt>Text(s)", "|the types: the page has"),
        (FIELDS, "Hint:", "Advice:", '|H: the page has "Advice"|"Hint"'),
        (FIELDS, "<dt>V</dt><dd><p>Severity", "<dt>V</dt><dd><p>Weight", '|V: the page has "Weight"|"Severity not localized"'),
        (FIELDS, "<dt>R", "<dt>X", "|the values of code: the page has"),
    ],
)  # fmt: skip
def test_what_differs(
    text: str, old: str, new: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert text.count(old) == 1
    code, lines = differences(tmp_path, text.replace(old, new), capsys)
    assert code == 1
    assert any(printed_line.startswith(line) for printed_line in lines), lines


def test_a_missing_and_a_new_term_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, lines = differences(tmp_path, FIELDS.replace("<dt>R", "<dt>X"), capsys)
    assert "of which X is new and R is missing" in lines[0]
