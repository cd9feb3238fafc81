"""The examples of README.md, structs.md and library.md in docs/how-to/ that need no server give what the pages say."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from logicalrep.cli.main import main
from tests.documents import ROOT, check_results, example, examples

_LIBRARY = "docs/how-to/library.md"


def test_the_examples_of_the_page_are_true() -> None:
    names: dict[str, Any] = {"__name__": "example"}
    assert sum(check_results(block, names) for block in examples("docs/how-to/structs.md", "python")) == 20


def test_the_message_of_the_readme() -> None:
    assert check_results(example("README.md", "v4.parse("), {"__name__": "example"}) == 2


def test_the_cells_of_a_row_on_the_page() -> None:
    assert check_results(example(_LIBRARY, "v4.TupleData.of("), {"__name__": "example"}) == 3


def test_messages_as_json_on_the_page() -> None:
    assert check_results(example(_LIBRARY, "v4.to_dict("), {"__name__": "example"}) == 2


def test_the_library_reads_captures(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    decoding, committed, columns = (text for text in examples(_LIBRARY, "python") if "Capture.open(" in text)
    exec(decoding, {})
    assert " x_log {'id': " in capsys.readouterr().out
    exec(committed, {})
    assert " insert " in capsys.readouterr().out
    names: dict[str, Any] = {}
    exec(columns, names)
    assert names["batch"].num_rows == len(names["messages"]) > 1000


def test_the_commands_read_captures(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    of_page = {"FILE": "tests/captures/pg18/mixed/v4-late.sql.jsonl.gz", "HEX": "53000002e601"}
    *lines, slot = example(_LIBRARY, "logicalrep decode FILE").splitlines()
    assert slot.startswith("logicalrep slot ")
    for line in lines:
        _, *arguments = shlex.split(line, comments=True)
        assert main([of_page.get(argument, argument) for argument in arguments]) == 0
        assert len(capsys.readouterr().out) > 100
    asked, *shown = example(_LIBRARY, "$ logicalrep inspect").splitlines()
    main(shlex.split(asked)[2:])
    captured = capsys.readouterr()
    assert [line.rstrip() for line in (captured.out + captured.err).splitlines()] == shown
