"""Somebody is called when a table stops and when the run ends with an error: by a command, and by a URL."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from logicalrep.observe.calls import Calls, CallsOnSchemaChange, CallsOnStop
from logicalrep.observe.events import DestinationFailing, RunEnded, SchemaChanged, TableStopped
from logicalrep.pipeline.state.state import StateError
from logicalrep.transactions.table_names import TableName

ORDERS = TableName("public", "orders")


def make_calls(calls: Calls) -> None:
    """Let happen what makes three calls, and three things that make none."""
    with calls.calling():
        calls.on_event(TableStopped(ORDERS, "a value\nof a line"))
        calls.on_event(SchemaChanged(ORDERS, ["v dropped"]))
        calls.on_event(DestinationFailing("no space", is_first=True))
        calls.on_event(DestinationFailing("no space", is_first=False))
        calls.on_event(RunEnded(StateError("paused", code="DESTINATION_PAUSED"), True))
        calls.on_event(RunEnded(StateError("another server", code="OTHER_SERVER"), False))


EXPECTED = [
    {"event": "table_stopped", "destination": "lake", "text": r"a value\nof a line", "table": "public.orders"},
    {"event": "destination_failing", "destination": "lake", "text": "no space"},
    {"event": "ended", "destination": "lake", "text": "[OTHER_SERVER] another server", "code": "OTHER_SERVER"},
]


def test_a_command_gets_json_on_standard_input(tmp_path: Path) -> None:
    heard = tmp_path / "a file"
    command = f"cat >> {shlex.quote(str(heard))} && echo >> {shlex.quote(str(heard))}"
    make_calls(CallsOnStop(command, "lake"))
    assert [json.loads(line) for line in heard.read_text().splitlines()] == EXPECTED


@contextmanager
def listening(status: int) -> Iterator[tuple[str, list[Any]]]:
    """Yield a URL, and what is posted to it."""
    heard: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/call", heard
    finally:
        server.shutdown()
        server.server_close()


def test_a_url_gets_json_that_is_posted() -> None:
    with listening(204) as (url, heard):
        make_calls(CallsOnStop(url, "lake"))
    assert heard == EXPECTED


def test_a_call_that_fails_is_a_line_of_the_log_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    make_calls(CallsOnStop("exit 3", "lake"))
    with listening(500) as (url, heard):
        make_calls(CallsOnStop(url, "lake"))
    assert len(heard) == 3
    events = ["table_stopped", "destination_failing", "ended"]
    assert [text.partition(" failed: ")[0].rpartition(" ")[2] for text in caplog.messages] == 2 * events


def test_other_columns_call_for_themselves() -> None:
    with listening(204) as (url, heard):
        calls = CallsOnSchemaChange(url, "lake")
        with calls.calling():
            calls.on_event(TableStopped(ORDERS, "a value"))
            calls.on_event(SchemaChanged(ORDERS, ["v dropped", "day added: date"]))
    text = "v dropped; day added: date"
    assert heard == [{"event": "schema_changed", "destination": "lake", "text": text, "table": "public.orders"}]
