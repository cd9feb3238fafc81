"""The command: what it prints, and its exit codes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codegen.__main__ import main
from codegen.pagecheck.command import AGREES, DIFFERS, UNREADABLE
from tests.codegen.pagecheck.pages import HTML, LOGICALREP, PAGES, PGWIRE_PAGE_18, SGML, WALSENDER, draw
from tests.conftest import ROOT

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(draw(LOGICALREP, 4, HTML), encoding="utf-8")
    return path


def test_a_page_that_agrees_exits_with_0(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", str(page), "--version", "4"]) == AGREES
    assert capsys.readouterr().out == f"{page}: agrees with logicalrep at version 4 (20 messages, 116 rows)\n"


def test_the_newest_version_is_the_default(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", str(page)]) == AGREES
    assert "at version 4" in capsys.readouterr().out


def test_a_page_that_differs_exits_with_1(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page.write_text(page.read_text(encoding="utf-8").replace("Byte1('I')", "Byte1('J')"), encoding="utf-8")
    assert main(["docs", str(page), "--version", "4"]) == DIFFERS
    out, err = capsys.readouterr()
    (line,) = out.splitlines()
    assert line.startswith(f"{page}:")
    assert ": Insert.tag: the page has \"Byte1('J')\"; spec/logicalrep/insert.yaml:" in line
    assert line.endswith(" has \"Byte1('I')\"")
    assert err == f"{page}: 1 difference from logicalrep at version 4\n"


def test_a_source_of_both_protocols_is_compared_with_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "protocol.sgml"
    path.write_text(draw(WALSENDER, 1, SGML) + draw(LOGICALREP, 2, SGML), encoding="utf-8")
    assert main(["docs", str(path), "--version", "2"]) == AGREES
    assert capsys.readouterr().out == (
        f"{path}: agrees with logicalrep at version 2 (15 messages, 79 rows)\n"
        f"{path}: agrees with walsender at version 1 (6 messages, 28 rows)\n"
    )


def test_a_page_that_is_none_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.html"
    path.write_text("<html><body><p>Nothing here.</p></body></html>", encoding="utf-8")
    assert main(["docs", str(path), "--version", "4"]) == UNREADABLE
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"{path}: has no table of message fields, neither in HTML nor in DocBook\n")


def test_a_page_of_other_messages_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.html"
    path.write_text("<dl><dt>Something else</dt><dd><dl><dt>Byte1('P')</dt><dd>x</dd></dl></dd></dl>", encoding="utf-8")
    assert main(["docs", str(path)]) == UNREADABLE
    assert capsys.readouterr().err == (
        f"{path}: has none of the messages of the spec "
        "(Base Backup, Binary Format of COPY, Logical Replication Message Formats, Message Formats, "
        "Streaming Replication Protocol)\n"
    )


@pytest.mark.parametrize("version", ["0", "5", "-1"])
def test_an_unknown_version_exits_with_2(page: Path, version: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", str(page), "--version", version]) == UNREADABLE
    assert capsys.readouterr().err == f"the protocol has no version {version}; the newest is 4\n"


def test_a_spec_with_mistakes_exits_with_2(page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", str(page), "--spec", str(tmp_path)]) == UNREADABLE
    assert "types.yaml" in capsys.readouterr().err


def test_the_page_of_the_whole_protocol_agrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", str(PGWIRE_PAGE_18)]) == 0
    assert capsys.readouterr().out == f"{PGWIRE_PAGE_18}: agrees with pgwire at version 3.2 (52 messages, 198 rows)\n"
    text = PGWIRE_PAGE_18.read_text("utf-8")
    changes = (
        ("Int16[", "Int32[", "Bind.parameter_formats"),
        ("zero byte is required as terminator", "byte is required at the end", "AuthenticationSASL.mechanisms"),
        ("CopyData (F &amp; B)", "CopyData (B)", "CopyData"),
        ("Byte4", "Byte8", "AuthenticationMD5Password.salt"),
        ("After the last parameter, the following fields appear", "There is more", "Bind.result_format_count"),
    )
    for old, new, what in changes:
        words = r"\s+".join(map(re.escape, old.split()))
        changed, count = re.subn(words, new, text, count=1)
        assert count == 1, old
        path = tmp_path / "page.html"
        path.write_text(changed, "utf-8")
        assert main(["docs", str(path)]) == 1
        assert f": {what}: the page has" in capsys.readouterr().out, old


def test_a_missing_page_exits_with_2_after_the_others_were_compared(
    page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["docs", str(tmp_path / "missing.html"), str(page)]) == UNREADABLE
    out, err = capsys.readouterr()
    assert out == f"{page}: agrees with logicalrep at version 4 (20 messages, 116 rows)\n"
    assert err.startswith(f"{tmp_path / 'missing.html'}: ")


def test_make_check_compares_each_page_of_the_repository() -> None:
    (names,) = re.findall(r"^PAGES := \$\(addprefix spec/pages/, (.*?)\)$", MAKEFILE, re.MULTILINE | re.DOTALL)
    compared = set(names.replace("\\", "").split())
    stored = {path.relative_to(PAGES).as_posix() for path in PAGES.rglob("*.*ml")}
    assert stored - compared == {"fragments/logicaldecoding-two-phase-callbacks.sgml"}, "it has no table"
    assert compared <= stored
    assert all(f"| `{name}` |" in (PAGES / "README.md").read_text("utf-8") for name in stored)
