"""Values in recorded conversations that follow from what the client sent: each row has the meaning of the page."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.conversation_reading import RECORDED, connections, decoded

INT4, TEXT, NAME, OID, VOID = 23, 25, 19, 26, 2278
"""Oids of pg_type, which are fixed."""
RANDOM, PG_PROC = 1598, 1255
"""Oids of pg_proc and pg_class, which are fixed."""

Messages = list[Any]


class Recording:
    """The messages of the connections of a file."""

    def __init__(self, path: Path) -> None:
        self.connections = [[message for _, _, message, *_ in decoded(chunks)] for chunks in connections(path)]
        self.messages = [message for messages in self.connections for message in messages]
        self.release = int(path.name[2:4])

    def all(self, name: str) -> Messages:
        """Return the messages with a name."""
        return [message for message in self.messages if type(message).__name__ == name]

    def only(self, name: str) -> Any:
        """Return the one message with a name."""
        (message,) = self.all(name)
        return message

    def answer(self, statement: str) -> Messages:
        """Return what follows a statement, up to ReadyForQuery."""
        queries = [index for index, message in enumerate(self.messages) if getattr(message, "query", "") == statement]
        start = queries[0] + 1
        names = [type(message).__name__ for message in self.messages[start:]]
        return self.messages[start : start + names.index("ReadyForQuery")]


def named(messages: Messages, name: str) -> Messages:
    return [message for message in messages if type(message).__name__ == name]


def rows(messages: Messages) -> list[tuple[bytes | None, ...]]:
    return [tuple(column.value for column in row.columns) for row in named(messages, "DataRow")]


def columns(messages: Messages) -> list[tuple[str, int, int]]:
    (description,) = named(messages, "RowDescription")
    return [(field.name, field.type_id, field.type_size) for field in description.fields]


def texts(message: Any) -> dict[str, str]:
    return {field.code: field.text for field in message.fields}


def _simple(recording: Recording) -> None:
    answer = recording.answer("insert into t select g, 'Größe '||g from generate_series(1,3) g;")
    assert [message.command for message in answer] == ["INSERT 0 3"]
    answer = recording.answer("select * from t order by id;")
    assert columns(answer) == [("id", INT4, 4), ("v", TEXT, -1)]
    fields = answer[0].fields
    assert [field.column_number for field in fields] == [1, 2]
    assert fields[0].table_id == fields[1].table_id >= 16384
    assert {(field.type_modifier, int(field.format_code)) for field in fields} == {(-1, 0)}
    assert [row[0] for row in rows(answer)] == [b"1", b"2", b"3"]
    assert answer[-1].command == "SELECT 3"
    answer = recording.answer("select null::text, 1 as a;")
    assert columns(answer) == [("text", TEXT, -1), ("a", INT4, 4)]
    assert rows(answer) == [(None, b"1")]
    assert [type(message).__name__ for message in recording.answer(";")] == ["EmptyQueryResponse"]
    (notice,) = named(recording.answer("do $$ begin raise notice 'hello'; end $$;"), "NoticeResponse")
    assert {"S": "NOTICE", "V": "NOTICE", "C": "00000", "M": "hello"}.items() <= texts(notice).items()
    (error,) = recording.answer("select 1/0;")
    assert {"S": "ERROR", "V": "ERROR", "C": "22012", "M": "division by zero"}.items() <= texts(error).items()
    (notification,) = named(recording.answer("notify c, 'payload';"), "NotificationResponse")
    assert (notification.channel, notification.payload) == ("c", "payload")
    assert notification.process_id == recording.only("BackendKeyData").process_id
    answer = recording.answer("copy t to stdout;")
    assert [int(code) for code in answer[0].column_formats] == [0, 0]
    assert [line.data.partition(b"\t")[0] for line in named(answer, "CopyData")] == [b"1", b"2", b"3"]
    assert answer[-1].command == "COPY 3"


def _extended(recording: Recording) -> None:
    answer = recording.answer("select $1::int + $2::int ")
    assert [parameter.value for parameter in answer[0].parameters] == [b"1", b"2"]
    assert (columns(answer), rows(answer)) == ([("?column?", INT4, 4)], [(b"3",)])
    answer = recording.answer("select $1::text ")
    assert (columns(answer), rows(answer)) == ([("text", TEXT, -1)], [(b"NULL",)])
    (description,) = named(recording.answer("select $1::int "), "Parse") or [None]
    assert description is None
    (parse,) = [message for message in recording.all("Parse") if message.statement]
    assert (parse.statement, parse.query) == ("s1", "select $1::int ")
    assert [bind.parameters[0].value for bind in recording.all("Bind") if bind.statement == "s1"] == [b"5"]
    (close,) = recording.all("Close")
    assert (close.closed.name, close.name) == ("STATEMENT", "s1")
    nothing = recording.answer("create table if not exists nothing_here()")
    assert named(nothing, "NoData")
    assert [described.described.name for described in named(nothing, "Describe")] == ["PORTAL"]


def _by_hand(recording: Recording) -> None:
    start = next(index for index, message in enumerate(recording.messages) if type(message).__name__ == "Parse")
    parse, statement, bind, portal, execute = recording.messages[start : start + 5]
    assert (parse.statement, parse.query) == ("s", "select generate_series(1,5)")
    assert (statement.described.name, statement.name) == ("STATEMENT", "s")
    assert (bind.portal, bind.statement, [int(code) for code in bind.result_formats]) == ("p", "s", [1])
    assert (portal.described.name, portal.name) == ("PORTAL", "p")
    assert (execute.portal, execute.row_limit) == ("p", 2)
    names = [type(message).__name__ for message in recording.messages[start:]]
    first, rest = names[: names.index("PortalSuspended")], names[names.index("PortalSuspended") :]
    assert (first.count("DataRow"), rest[: rest.index("CommandComplete")].count("DataRow")) == (2, 3)
    numbers = [row for row in rows(recording.messages) if len(row[0] or b"") == 4]
    assert numbers == [(number.to_bytes(4, "big"),) for number in range(1, 6)]
    assert [
        int(named(recording.all("RowDescription"), "RowDescription")[index].fields[0].format_code) for index in (0, 1)
    ] == [0, 1]
    assert [close.closed.name for close in recording.all("Close")] == ["PORTAL", "STATEMENT"]
    failure = recording.only("CopyFail").reason
    assert failure in texts(recording.only("ErrorResponse"))["M"]
    assert texts(recording.only("ErrorResponse"))["C"] == "57014"
    call = recording.only("FunctionCall")
    assert (call.function_id, call.arguments, int(call.result_format)) == (RANDOM, (), 1)
    assert len(recording.only("FunctionCallResponse").result) == 8
    copied = recording.only("CopyOutResponse")
    assert (int(copied.overall_format), [int(code) for code in copied.column_formats]) == (1, [1])


def _cancel(recording: Recording) -> None:
    key, request = recording.only("BackendKeyData"), recording.only("CancelRequest")
    assert (request.process_id, request.secret_key) == (key.process_id, key.secret_key)
    assert 0 < key.process_id < 1 << 22
    assert columns(recording.answer("select pg_sleep(20)")) == [("pg_sleep", VOID, 4)]
    assert texts(recording.only("ErrorResponse"))["C"] == "57014"


def _large_object(recording: Recording) -> None:
    (query,) = [message.query for message in recording.all("Query") if "pg_proc" in message.query]
    answer = recording.answer(query)
    assert columns(answer) == [("proname", NAME, 64), ("oid", OID, 4)]
    assert {field.table_id for field in answer[0].fields} == {PG_PROC}
    functions = {name: int(oid or 0) for name, oid in rows(answer)}
    assert answer[-1].command == f"SELECT {len(functions)}"
    called = [call.function_id for call in recording.all("FunctionCall")]
    assert called == [functions[name] for name in (b"lo_creat", b"lo_open", b"lowrite", b"lo_close")]
    results = [response.result for response in recording.all("FunctionCallResponse")]
    written = recording.all("FunctionCall")[2].arguments[1].value
    assert int.from_bytes(results[2], "big") == len(written)
    assert recording.all("FunctionCall")[1].arguments[0].value == results[0]
    statuses = [ready.transaction_status.name for ready in recording.all("ReadyForQuery")]
    assert (statuses[0], set(statuses[1:-1]), statuses[-1]) == ("IDLE", {"IN_TRANSACTION"}, "IDLE")


def _user(recording: Recording) -> str:
    return {item.name: item.setting for item in recording.only("StartupMessage").parameters}["user"]


def _password(recording: Recording) -> None:
    assert (_user(recording), recording.only("PasswordMessage").password) == ("plain", "secret")


def _md5(recording: Recording) -> None:
    salt = recording.only("AuthenticationMD5Password").salt
    inner = hashlib.md5(f"secret{_user(recording)}".encode()).hexdigest()
    expected = hashlib.md5(inner.encode() + salt).hexdigest()
    assert recording.only("PasswordMessage").password == f"md5{expected}"


def _scram(recording: Recording) -> None:
    assert recording.only("SASLInitialResponse").mechanism in recording.only("AuthenticationSASL").mechanisms
    (nonce,) = re.findall(rb"r=(\S+)", recording.only("SASLInitialResponse").response)
    challenge = recording.only("AuthenticationSASLContinue").data
    (whole,) = re.findall(rb"r=([^,]+)", challenge)
    assert whole.startswith(nonce)
    assert re.findall(rb"r=([^,]+)", recording.only("SASLResponse").data) == [whole]


def _refused(recording: Recording) -> None:
    _scram(recording)
    assert {"S": "FATAL", "C": "28P01"}.items() <= texts(recording.only("ErrorResponse")).items()


def _accepted(recording: Recording) -> None:
    _scram(recording)
    assert recording.only("AuthenticationSASLFinal").data.startswith(b"v=")


def _ssl_refused(recording: Recording) -> None:
    names = [type(message).__name__ for message in recording.messages[:3]]
    assert names == ["SSLRequest", "EncryptionResponse", "StartupMessage"]
    assert recording.messages[1].answer.name == "REFUSED"


def _replication(recording: Recording) -> None:
    answer = recording.answer("IDENTIFY_SYSTEM;")
    assert [name for name, *_ in columns(answer)] == ["systemid", "timeline", "xlogpos", "dbname"]
    assert rows(answer)[0][3] == b"postgres"


def _start_replication(recording: Recording) -> None:
    response = recording.only("CopyBothResponse")
    assert (int(response.overall_format), response.column_formats) == (0, ())
    assert [message.command for message in recording.all("CommandComplete")] == ["COPY 0", "START_REPLICATION"]


def _version(recording: Recording) -> None:
    (parameter,) = {item.setting for item in recording.all("ParameterStatus") if item.name == "server_version"}
    assert parameter.startswith(str(recording.release))
    assert len(recording.only("BackendKeyData").secret_key) == (32 if recording.release >= 18 else 4)


def _pipeline(recording: Recording) -> None:
    assert rows(recording.messages) == [(b"1",), (b"2",), (b"3",)]
    assert [(execute.portal, execute.row_limit) for execute in recording.all("Execute")] == [("", 0)] * 3
    assert [int(fields.fields[0].type_id) for fields in recording.all("RowDescription")] == [INT4, TEXT, INT4]


CHECKS: dict[str, Callable[[Recording], None]] = {
    "by_hand": _by_hand,
    "cancel_3_0": _cancel,
    "cancel_3_2": _cancel,
    "extended": _extended,
    "large_object": _large_object,
    "md5": _md5,
    "password": _password,
    "pipeline": _pipeline,
    "replication": _replication,
    "scram": _accepted,
    "simple": _simple,
    "ssl_refused": _ssl_refused,
    "start_replication": _start_replication,
    "version_3_2": _version,
    "wrong_password": _refused,
}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_values_follow_from_what_the_client_sent(path: Path) -> None:
    _, _, name = path.name.removesuffix(".jsonl.gz").partition("-")
    CHECKS[name](Recording(path))
