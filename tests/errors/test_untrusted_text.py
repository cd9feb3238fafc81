"""Names and texts of others are shown without what a terminal, a log or a reader's eye would obey."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress

from logicalrep.cli.change_table import table_lines
from logicalrep.cli.main import main
from logicalrep.cli.terminal import TerminalStyle
from logicalrep.cli.verify import verdict_json, verdict_lines
from logicalrep.observe.events import (
    CopyEnded,
    CopyStarted,
    LoadsNeeded,
    RowsCopied,
    RunEnded,
    TableStopped,
    WaitReported,
    WarningIssued,
)
from logicalrep.observe.logged import LogObserver
from logicalrep.observe.observer import Observer
from logicalrep.observe.terminal import Bars, LinePrinter
from logicalrep.pipeline.config.nodes import ConfigError, refuse
from logicalrep.pipeline.table_errors import reason_of
from logicalrep.pipeline.verify.verdicts import Difference, Verdict
from logicalrep.postgres.preflight.findings import Finding, PreflightError
from logicalrep.transactions.logs import logger, warn
from logicalrep.transactions.table_names import TableName
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.visible import secrets_of, visible, visible_json, without_secrets

NAME = "evil\x1b]0;title\x07\r\n2026-01-01 ERROR forged\u202e\x9b2J\x7f"
SHOWN = r"evil\x1b]0;title\x07\r\n2026-01-01 ERROR forged\u202e\x9b2J\x7f"
TABLE = TableName("public", NAME)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NAME, SHOWN),
        ("plain ASCII, äöü, 表, עברית, 👩\u200d💻, नमस\u200cते", "plain ASCII, äöü, 表, עברית, 👩\u200d💻, नमस\u200cते"),
        ("\t\u2028\u2029\ufeff\xad\u2066", r"\t\u2028\u2029\ufeff\xad\u2066"),
        ("\U000e0041\ud800", r"\U000e0041\ud800"),
    ],
)
def test_what_is_not_seen_has_an_escape(text: str, expected: str) -> None:
    assert visible(text) == expected
    assert visible(expected) == expected
    for indent in (None, 2):
        written = visible_json({text: [text]}, indent)
        assert json.loads(written) == {text: [text]}
        assert visible(written.replace("\n", "")) == written.replace("\n", "")
    visible(text).encode()


def errors() -> list[LogicalRepError]:
    with pytest.raises(ConfigError) as config:
        refuse([f"a.yaml:2: {NAME}", "a.yaml:3: b"])
    return [LogicalRepError(NAME), PreflightError([Finding("A", NAME), Finding("B", "b")]), config.value]


def test_the_text_of_an_error_has_the_lines_that_it_should_have() -> None:
    assert [str(error).splitlines() for error in errors()] == [
        [f"[LOGICALREP] {SHOWN}"],
        [f"[A] {SHOWN}", "[B] b"],
        ["[CONFIG_INVALID] there are 2 mistakes in the settings:", f"a.yaml:2: {SHOWN}", "a.yaml:3: b"],
    ]


@pytest.mark.parametrize("name", ["logicalrep", "logicalrep.batch", "logicalrep.replicate"])
def test_each_record_of_the_log_is_one_line(name: str) -> None:
    written, observer = io.StringIO(), LogObserver()
    handler = logging.StreamHandler(written)
    log = logging.getLogger(name)
    log.addHandler(handler)
    try:
        logger(name).warning("about %s", NAME)
        warn([NAME])
        observer.on_event(TableStopped(TABLE, NAME))
        observer.on_event(LoadsNeeded([TABLE], NAME))
        observer.on_event(RunEnded(errors()[1], is_requested=True))
    finally:
        log.removeHandler(handler)
    lines = written.getvalue().split("\n")
    assert f"about {SHOWN}" in lines
    assert lines == [visible(line) for line in lines]
    assert not [line for line in lines if line.startswith("2026")]


def test_the_traceback_of_an_error_in_the_log_is_safe_too() -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    log = logging.getLogger("logicalrep.replicate")
    log.addHandler(handler)
    try:
        reason_of(ValueError(NAME))
        try:
            raise ValueError(NAME)
        except ValueError as error:
            log.error("not foreseen", exc_info=error)
    finally:
        log.removeHandler(handler)
    lines = written.getvalue().split("\n")
    assert "Traceback (most recent call last):" in lines
    assert lines == [visible(line) for line in lines]


def show_all(observer: Observer) -> None:
    observer.on_event(LoadsNeeded([TABLE], NAME))
    observer.on_event(CopyStarted(TABLE, 10))
    observer.on_event(RowsCopied(TABLE, 5))
    observer.on_event(CopyEnded(TABLE, 10, 1.0))
    observer.on_event(TableStopped(TABLE, NAME))
    observer.on_event(WaitReported(NAME))
    observer.on_event(WarningIssued(NAME))


def test_the_lines_of_replicate_are_safe() -> None:
    written = io.StringIO()
    show_all(LinePrinter(written))
    lines = written.getvalue().removesuffix("\n").split("\n")
    assert len(lines) == 7
    assert lines == [visible(line) for line in lines]


def test_the_bars_of_replicate_are_safe() -> None:
    written = io.StringIO()
    with Progress(console=Console(file=written, force_terminal=True, width=300)) as progress:
        show_all(Bars(progress))
    # Escapes of the bars' own stay.
    assert not {"\x07", "\x9b", "\u202e", "\x7f"} & set(written.getvalue())
    assert "\x1b]" not in written.getvalue()
    assert SHOWN in written.getvalue()


def test_the_lines_of_verify_are_safe() -> None:
    row: dict[str, str | None] = {NAME: NAME}
    different = Verdict(TABLE, "different", 3, 1, examples=(Difference("changed", row, row, row),))
    for verdict in (Verdict(TABLE, "equal", 3), different, Verdict(TABLE, "undecided", 3, reason=NAME)):
        for line in (*verdict_lines(verdict, TerminalStyle(io.StringIO())), verdict_json(verdict)):
            assert line == visible(line)
    assert json.loads(verdict_json(different))["examples"][0]["key"] == row


def test_the_lines_of_changes_are_safe() -> None:
    none = dict.fromkeys(("schema", "table", "before", "after", "lsn", "commit_lsn", "xid", "ordinal", "origin", "gid"))
    row: Any = {**none, "op": "insert", "schema": NAME, "table": NAME, "xid": 1, "gid": NAME, "after": {NAME: NAME}}
    row |= {"key": [], "unchanged": [NAME], "commit_timestamp": None}
    lines = list(table_lines([row], TerminalStyle(io.StringIO())))
    assert len(lines) == 2
    assert lines == [visible(line) for line in lines]


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_the_lines_of_status_are_safe(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = {
        "state": "stopped",
        "phase": "held",
        "version": 1,
        "lsn": "0/1",
        "rows": 1,
        "progress": None,
        "error": NAME,
        "refused": NAME,
    }
    plain = dict.fromkeys(
        ("paused_since", "lag_seconds", "retained_bytes", "lag_bytes", "safe_wal_size", "load_snapshot", "standbys")
    )
    status = SimpleNamespace(
        **plain, has_begun=True, is_running=True, lsn="0/1", slot=NAME, lost=NAME, oldest_transaction=NAME, oldest_transaction_since=None,
        tables={str(TABLE): table}, to_json=lambda: {"slot": NAME},
    )  # fmt: skip
    monkeypatch.setattr("logicalrep.pipeline.operate.status.query_status", lambda connection, storage: status)
    assert main(["status", "--dsn", "host=/nowhere", "--to", str(tmp_path), *arguments]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines == [visible(line) for line in lines]


@pytest.mark.parametrize(
    "action", [lambda: main(["decode", NAME]), lambda: main(["changes", NAME])], ids=["decode", "changes"]
)
def test_an_error_of_the_machine_is_one_line(action: Callable[[], int], capsys: pytest.CaptureFixture[str]) -> None:
    assert action() == 1
    (line,) = capsys.readouterr().err.removesuffix("\n").split("\n")
    assert line == visible(line)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("to postgresql://me:pa%40ss@db/x failed", "to postgresql://me:***@db/x failed"),
        ("GET https://h/v1?a=b&access_token=abc&c=d: 403", "GET https://h/v1?a=b&access_token=***&c=d: 403"),
        ("https://h/x?sig=a%2Fb", "https://h/x?sig=***"),
        ("abfss://container@account.net/x?y=z", "abfss://container@account.net/x?y=z"),
        ("host=h:5432 and a@b", "host=h:5432 and a@b"),
    ],
)
def test_no_error_shows_the_secrets_of_a_url(text: str, shown: str) -> None:
    error = LogicalRepError(text)
    assert error.description == shown
    assert str(error) == f"[LOGICALREP] {shown}"


def test_given_secrets_are_hidden_in_each_spelling() -> None:
    assert without_secrets("a/b c a%2Fb a/bc", ["a/b", "", "a/bc"]) == "*** c *** ***"
    options = {"aws_secret_access_key": "1", "azure_storage_sas_token": "2", "token": "3", "aws_region": "4"}
    assert secrets_of(options) == ["1", "2", "3"]
