"""Messages become dictionaries of JSON's types and come back equal; each wrong dictionary is one EncodeError."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.model.reader import load
from codegen.model.versions import views
from codegen.vectors.command import vectors
from logicalrep import DecodeError, EncodeError, Lsn, TimestampTz, v1, v2, v4, walsender
from logicalrep_protocol import copy_binary
from logicalrep_protocol.pgwire import v3_0
from logicalrep_protocol.v1 import NullValue, Text, TupleData
from logicalrep_runtime.errors import EncodingError
from tests.codegen.vector_reading import module_path
from tests.conftest import ROOT
from tests.protocol.agreement import VERSIONS
from tests.protocol.strategies import ANYTHING, State, captured, envelopes, messages

INSERT: dict[str, Any] = {"message": "Insert", "relation_id": 1, "new": {"kinds": "tn", "values": ["1", None]}}
RELATION: dict[str, Any] = {
    "message": "Relation",
    "relation_id": 1,
    "namespace": "s",
    "name": "t",
    "replica_identity": "d",
    "columns": [{"flags": 0, "name": "a", "type_id": 23, "type_modifier": -1}],
}
COMMIT: dict[str, Any] = {
    "message": "Commit",
    "commit_lsn": "0/1",
    "end_lsn": "0/2",
    "commit_timestamp": "2026-01-01T00:00:00Z",
}


def returns(module: Any, message: Any, encoding: str = "utf-8") -> None:
    """Fail unless a message comes back from JSON, down to the types of its values."""
    values = module.to_dict(message, encoding=encoding)
    read = module.from_dict(json.loads(json.dumps(values)), encoding=encoding)
    assert read == message
    assert repr(read) == repr(message)
    assert json.loads(json.dumps(values)) == values


def test_the_messages_of_every_protocol_come_back() -> None:
    count = 0
    for protocol in load(ROOT / "spec"):
        for view in views(protocol):
            module = importlib.import_module(f"logicalrep_protocol.{module_path(view)}")
            for vector in vectors(view):
                if "refused" in vector:
                    continue
                sender = {"sender": vector["from"]} if "from" in vector else {}
                arguments = sender if hasattr(module, "client_message") else {}
                data = bytes.fromhex(vector["bytes"])
                returns(module, module.parse(data, **vector.get("session", {}), **arguments))
                count += 1
    assert count > 300


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=150)
@given(messages())
def test_any_message_comes_back(drawn: tuple[State, Any]) -> None:
    state, message = drawn
    returns(VERSIONS[state.version], message, state.encoding)


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=50)
@given(envelopes())
def test_any_envelope_comes_back(drawn: tuple[str, Any]) -> None:
    returns(walsender, drawn[1])


@pytest.mark.slow
def test_messages_of_servers_come_back() -> None:
    for state, data in captured():
        try:
            message = VERSIONS[state.version].parse(data, **state.arguments)
        except DecodeError:
            continue
        returns(VERSIONS[state.version], message, state.encoding)


def test_values_have_the_form_of_the_command_line() -> None:
    row = TupleData.of(Text(b"1"), NullValue(), Text(b"\xff"))
    assert v4.to_dict(v4.Insert(relation_id=1, new=row)) == {
        "message": "Insert",
        "relation_id": 1,
        "new": {"kinds": "tnt", "values": ["1", None, {"base64": "/w=="}]},
    }
    abort = v4.StreamAbort(xid=1, subxid=2, abort_lsn=Lsn("16/B374D848"), abort_timestamp=TimestampTz(-1))
    assert v4.to_dict(abort) == {
        "message": "Stream Abort",
        "xid": 1,
        "subxid": 2,
        "abort_lsn": "16/B374D848",
        "abort_timestamp": "1999-12-31T23:59:59.999999Z",
    }


def test_bytes_are_text_in_the_encoding_of_the_session() -> None:
    insert = v1.Insert(relation_id=1, new=TupleData.of(Text("Käse".encode("iso8859-1"))))
    assert v1.to_dict(insert, encoding="iso8859-1")["new"]["values"] == ["Käse"]
    assert v1.to_dict(insert)["new"]["values"] == [{"base64": "S+RzZQ=="}]
    assert v1.from_dict(v1.to_dict(insert)) == insert


@pytest.mark.parametrize("value", [b"\xfe\xff\0a", b"+AGE-", b"\x1b$B", b"\x81\x5f", b"a"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-7", "iso2022_jp", "shift_jis", "big5"])
def test_bytes_come_back_where_several_of_them_are_one_text(value: bytes, encoding: str) -> None:
    returns(v1, v1.Message(flags=0, message_lsn=Lsn(0), prefix="", content=value), encoding)


def test_an_absent_attribute_has_no_key_and_null_is_none() -> None:
    row = copy_binary.CopyRow(columns=(copy_binary.CopyValue(value=None),))
    file = copy_binary.CopyFile(flags=0, extension=b"", rows=(row,))
    assert copy_binary.to_dict(file)["rows"] == [{"columns": [{"value": None}]}]
    assert v2.from_dict({**INSERT, "xid": None}) == v2.from_dict(INSERT)
    assert "xid" not in v2.to_dict(v2.from_dict(INSERT))


def test_numbers_are_accepted_for_log_positions_and_times() -> None:
    assert v1.from_dict({**COMMIT, "end_lsn": 2, "commit_timestamp": 820_540_800_000_000}) == v1.from_dict(COMMIT)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        (None, "message: message: expected a dictionary, found None"),
        ([INSERT], "message: message: expected a dictionary, found [{'message': 'Insert', 'relation_id': 1, 'new': {'kinds':..."),
        ({}, "message: message: expected the name of a message in this version, found None"),
        ({"message": "Stream Stop"}, "message: message: expected the name of a message in this version, found 'Stream Stop'"),
        ({"message": ["Insert"]}, "message: message: expected the name of a message in this version, found ['Insert']"),
        ({"message": "Insert"}, "Insert: relation_id: expected a value, found none"),
        ({"message": "Insert", "relation_id": 1}, "Insert: new: expected a value, found none"),
        ({**INSERT, "new": {"kinds": ""}}, "Insert: new.values: expected a value, found none"),
        ({**INSERT, "xid": 1}, "Insert: attributes: expected relation_id, new, found 'xid'"),
        ({1: 1, "message": "Type", "type_id": 1, "namespace": "", "name": ""}, "Type: attributes: expected type_id, namespace, name, found 1"),
        ({**INSERT, "new": {"kinds": "", "values": [], "cells": []}}, "Insert: new: expected kinds, values, found 'cells'"),
        ({**INSERT, "relation_id": "1"}, "Insert: relation_id: expected a whole number, found '1'"),
        ({**INSERT, "relation_id": 1.0}, "Insert: relation_id: expected a whole number, found 1.0"),
        ({**INSERT, "relation_id": True}, "Insert: relation_id: expected a whole number, found True"),
        ({**INSERT, "relation_id": None}, "Insert: relation_id: expected a whole number, found None"),
        ({**INSERT, "new": []}, "Insert: new: expected a dictionary with kinds, values, found []"),
        ({**INSERT, "new": {"kinds": "t", "values": "1"}}, "Insert: new.values: expected a list, found '1'"),
        (
            {**INSERT, "new": {"kinds": "tt", "values": ["1", 1]}},
            'Insert: new.values[1]: expected a text in utf-8, or {"base64": ...}, found 1',
        ),
        (
            {**INSERT, "new": {"kinds": "t", "values": [{"base64": "!"}]}},
            "Insert: new.values[0]: expected a text in utf-8, or {\"base64\": ...}, found {'base64': '!'}",
        ),
        (
            {**INSERT, "new": {"kinds": "t", "values": ["\ud800"]}},
            "Insert: new.values[0]: expected a text in utf-8, or {\"base64\": ...}, found '\\ud800'",
        ),
        ({**RELATION, "name": b"t"}, "Relation: name: expected a text, found b't'"),
        ({**RELATION, "replica_identity": "x"}, "Relation: replica_identity: expected 'd' or 'n' or 'f' or 'i', found 'x'"),
        ({**RELATION, "columns": [{}]}, "Relation: columns[0].flags: expected a value, found none"),
        ({**COMMIT, "end_lsn": "12"}, "Commit: end_lsn: expected Lsn as text, found '12'"),
        ({**COMMIT, "end_lsn": -1}, "Commit: end_lsn: expected Lsn as text, found -1"),
        (
            {**COMMIT, "commit_timestamp": "2026-01-01T00:00:00"},
            "Commit: commit_timestamp: expected TimestampTz as text, found '2026-01-01T00:00:00'",
        ),
        (
            {"message": "Delete", "relation_id": 1, "old_kind": "X", "old": {"kinds": "", "values": []}},
            "Delete: old_kind: expected 'K' or 'O', found 'X'",
        ),
    ],
)  # fmt: skip
def test_a_wrong_dictionary_is_one_error(values: Any, error: str) -> None:
    with pytest.raises(EncodeError, match=f"^{re.escape(error)}$"):
        v1.from_dict(values)


def test_numbers_with_names_have_no_others() -> None:
    with pytest.raises(EncodeError, match=r"formats\[1\]: expected 0 or 1, found 2$"):
        v3_0.from_dict({"message": "CopyInResponse", "overall_format": 0, "column_formats": [0, 2]})


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=300)
@given(messages(), st.data())
def test_any_wrong_value_is_an_encode_error_or_a_message(drawn: tuple[State, Any], data: st.DataObject) -> None:
    state, message = drawn
    module = VERSIONS[state.version]
    values = module.to_dict(message)
    owner = data.draw(st.sampled_from([values, *(value for value in values.values() if isinstance(value, dict))]))
    owner[data.draw(st.sampled_from([*owner, "unknown"]))] = data.draw(ANYTHING)
    try:
        read = module.from_dict(values)
    except EncodeError:
        return
    assert dataclasses.is_dataclass(read)
    assert module.from_dict(module.to_dict(read)) == read


def test_a_message_of_another_version_or_with_a_wrong_value_has_no_dictionary() -> None:
    insert = v1.from_dict(INSERT)
    with pytest.raises(EncodeError, match=r"^message: message: expected a message of this version, found Insert"):
        v4.to_dict(insert)  # type: ignore[arg-type]
    with pytest.raises(
        EncodeError, match=r"^Truncate: relation_ids: expected a value of the attribute's type, found 1.5$"
    ):
        v1.to_dict(v1.Truncate(relation_ids=(1.5,)))  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match=r"^Insert: new: expected a value of the attribute's type, found <class "):
        v1.to_dict(v1.Insert(relation_id=1, new=TupleData))  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match=r"^Insert: new.kinds: expected a value of the attribute's type, found 1.5$"):
        v1.to_dict(v1.Insert(relation_id=1, new=TupleData(kinds=1.5, values=())))  # type: ignore[arg-type]


def test_an_unknown_encoding_is_an_error() -> None:
    insert = v1.from_dict(INSERT)
    with pytest.raises(EncodingError):
        v1.to_dict(insert, encoding="klingon")
    with pytest.raises(EncodingError):
        v1.from_dict(INSERT, encoding="klingon")
