"""Input and output of the columnar decoder: arrays of every kind, schemas, and batches of unusual shape."""

from __future__ import annotations

import os
import threading
from typing import Any

import pyarrow as pa
import pytest

from logicalrep import Lsn, Oid, TimestampTz, TransactionId, v1
from logicalrep_protocol.columnar import LocatedBatch, Session, batch_schema, decode_batch, locate_batch
from logicalrep_protocol.v1 import NullValue, Text, TupleData, UnchangedToast
from logicalrep_protocol.versions import PARSE
from logicalrep_runtime.errors import EncodingError
from tests.arrow.expected import check, rows_of

SESSION = Session(version=1)


def insert(*cells: v1.Cell) -> bytes:
    return v1.Insert(relation_id=Oid(1), new=TupleData.of(*cells)).build()


MESSAGES = [insert(Text(str(number).encode()), NullValue()) for number in range(20)]


def values_of(batch: pa.RecordBatch) -> list[Any]:
    return [[cell["value"] for cell in row] for row in batch["new"].to_pylist()]


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param(pa.array(MESSAGES, pa.binary()), id="binary"),
        pytest.param(pa.array(MESSAGES, pa.large_binary()), id="large binary"),
        pytest.param(pa.array([b"?", *MESSAGES, b"?"], pa.binary())[1:-1], id="a slice"),
        pytest.param(pa.array([b"?", *MESSAGES, b"?"], pa.large_binary())[1:-1], id="a slice of large binary"),
        pytest.param(pa.chunked_array([MESSAGES[:3], [], MESSAGES[3:]], pa.binary()), id="chunks"),
        pytest.param(pa.chunked_array([MESSAGES], pa.binary()), id="one chunk"),
        pytest.param(
            pa.chunked_array([pa.array([b"?", *MESSAGES[:5]], pa.binary())[1:], MESSAGES[5:]]), id="a sliced chunk"
        ),
    ],
)
def test_messages_may_be_any_array_of_bytes(messages: pa.Array | pa.ChunkedArray) -> None:
    batch, _ = decode_batch(messages, SESSION)
    assert values_of(batch) == [[str(number).encode(), None] for number in range(20)]


def test_what_was_located_is_good_until_it_is_left() -> None:
    def located(count: int) -> LocatedBatch:
        return locate_batch(pa.array(MESSAGES[:count], pa.binary()), SESSION)

    with located(20) as first:
        number = first.numbers["new"]
        alone = first.located.cells[number].starts.tolist()
        with located(3):
            decode_batch(pa.array(MESSAGES[:5], pa.binary()), SESSION, large=True)
            assert first.located.cells[number].starts.tolist() == alone
    assert not first.located.cells
    with located(20) as second, located(20) as third:
        assert second.located.cells[number].starts.tolist() == alone
        starts = [location.located.cells[number].starts.ctypes.data for location in (second, third)]
        assert starts[0] != starts[1]


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param(pa.array([], pa.binary()), id="an array"),
        pytest.param(pa.array(MESSAGES, pa.binary())[7:7], id="a slice"),
        pytest.param(pa.chunked_array([], pa.binary()), id="no chunk"),
    ],
)
def test_no_messages_are_an_empty_batch(messages: pa.Array | pa.ChunkedArray) -> None:
    session = Session(version=4, streaming=True)
    batch, after = decode_batch(messages, session)
    assert (batch.num_rows, batch.schema, after) == (0, batch_schema(session), session)


def test_a_null_is_refused() -> None:
    with pytest.raises(ValueError, match="message 1 is null"):
        decode_batch(pa.array([MESSAGES[0], None], pa.binary()), SESSION)


@pytest.mark.parametrize("messages", [pa.array(["text"]), pa.array([1]), [b"bytes"]])
def test_other_things_than_bytes_are_refused(messages: Any) -> None:
    with pytest.raises(TypeError, match="must be a binary or large_binary array"):
        decode_batch(messages, SESSION)


def test_offsets_outside_of_the_data_are_refused() -> None:
    offsets = pa.array([0, 5, 3, 5], pa.int32()).buffers()[1]
    messages = pa.Array.from_buffers(pa.binary(), 3, [None, offsets, pa.py_buffer(b"12345")])
    with pytest.raises(ValueError, match="message 1 do not lie within"):
        decode_batch(messages, SESSION)


def test_rows_without_columns_and_rows_with_1600() -> None:
    widths = [0, 1600, 0, 1, 32767]
    cells = [[Text(str(index).encode() * (index % 50)) for index in range(width)] for width in widths]
    batch, _ = decode_batch(pa.array([insert(*row) for row in cells], pa.binary()), SESSION)
    assert values_of(batch) == [[cell.value for cell in row] for row in cells]


def test_many_small_values_outgrow_the_first_allocation() -> None:
    row = [NullValue(), UnchangedToast()] * 10_000
    messages = [
        v1.Update(relation_id=Oid(1), old_kind="O", old=TupleData.of(*row), new=TupleData.of(*row)).build()
    ] * 30
    batch, _ = decode_batch(pa.array(messages, pa.binary()), SESSION)
    for name in ("old", "new"):
        assert batch[name].value_lengths().to_pylist() == [20_000] * 30
        assert batch[name].flatten().field("kind").value_counts().to_pylist() == [
            {"values": 110, "counts": 300_000},
            {"values": 117, "counts": 300_000},
        ]


@pytest.mark.parametrize("order", [1, -1])
def test_batches_unlike_the_last_one_take_other_room(order: int) -> None:
    batches = [
        [v1.Begin(final_lsn=Lsn(1), commit_timestamp=TimestampTz(0), xid=TransactionId(1)).build()] * 1100,
        [insert(*[NullValue()] * 50)] * 100,
        [insert(Text(b"x" * 5000))] * 100,
        [v1.Origin(origin_lsn=Lsn(1), name="o").build()] * 1100,
        [v1.Truncate(options=0, relation_ids=(Oid(1),) * 3).build()] * 1100,
        [insert(*[Text(b"")] * 50), v1.Origin(origin_lsn=Lsn(1), name="p").build()] * 600,
        [],
    ]
    for messages in batches[::order] * 2:
        check(messages, SESSION)


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 31, 32, 33, 100, 1_000_000])
def test_values_of_every_length(length: int) -> None:
    value = bytes(index % 251 for index in range(length))
    batch, _ = decode_batch(pa.array([insert(Text(value), Text(value))] * 3, pa.binary()), SESSION)
    assert values_of(batch) == [[value, value]] * 3


@pytest.mark.parametrize("version", PARSE)
@pytest.mark.parametrize("errors", ["raise", "column"])
@pytest.mark.parametrize("values", ["binary", "string"])
@pytest.mark.parametrize("for_spark", [False, True])
@pytest.mark.parametrize("large", [False, True])
def test_the_schema_is_known_ahead(version: int, errors: Any, values: Any, for_spark: bool, large: bool) -> None:
    options = {"errors": errors, "values": values, "for_spark": for_spark, "large": large}
    session = Session(version=version)
    batch, _ = decode_batch(pa.array([], pa.binary()), session, **options)
    assert batch.schema == batch_schema(session, **options)


BEGIN = v1.Begin(final_lsn=Lsn("FFFFFFFF/1"), commit_timestamp=TimestampTz(-1), xid=TransactionId(4294967295))
TRUNCATE = v1.Truncate(options=3, relation_ids=(Oid(1), Oid(4294967295)))


def test_the_types_of_the_columns() -> None:
    batch, _ = decode_batch(pa.array([BEGIN.build(), TRUNCATE.build()], pa.binary()), SESSION)
    types = {field.name: str(field.type) for field in batch.schema}
    assert types == {
        "tag": "string",
        "final_lsn": "uint64",
        "commit_timestamp": "timestamp[us, tz=UTC]",
        "xid": "uint32",
        "flags": "uint8",
        "message_lsn": "uint64",
        "prefix": "string",
        "content": "binary",
        "commit_lsn": "uint64",
        "end_lsn": "uint64",
        "origin_lsn": "uint64",
        "name": "string",
        "relation_id": "uint32",
        "namespace": "string",
        "replica_identity": "string",
        "columns": "list<item: struct<flags: uint8 not null, name: string not null, type_id: uint32 not null, "
        "type_modifier: int32 not null> not null>",
        "type_id": "uint32",
        "new": "list<item: struct<kind: int8 not null, value: binary> not null>",
        "old_kind": "string",
        "old": "list<item: struct<kind: int8 not null, value: binary> not null>",
        "options": "uint8",
        "relation_ids": "list<item: uint32 not null>",
        "subxid": "uint32",
        "prepare_lsn": "uint64",
        "prepare_timestamp": "timestamp[us, tz=UTC]",
        "gid": "string",
        "prepare_end_lsn": "uint64",
        "rollback_end_lsn": "uint64",
        "rollback_timestamp": "timestamp[us, tz=UTC]",
    }
    assert str(batch["commit_timestamp"][0].as_py()) == "1999-12-31 23:59:59.999999+00:00"


def test_for_spark_no_integer_is_unsigned() -> None:
    messages = pa.array([BEGIN.build(), TRUNCATE.build()], pa.binary())
    batch, _ = decode_batch(messages, SESSION, for_spark=True)
    assert "uint" not in str(batch.schema)
    assert rows_of(batch) == [
        {
            "tag": "B",
            # The same 64 bits.
            "final_lsn": int(Lsn("FFFFFFFF/1")) - (1 << 64),
            "commit_timestamp": 946684799999999,
            "xid": 4294967295,
        },
        {"tag": "T", "options": 3, "relation_ids": [1, 4294967295]},
    ]


def test_large_types_hold_the_same() -> None:
    relation = v1.Relation(
        relation_id=Oid(1),
        namespace="s",
        name="t",
        replica_identity=v1.ReplicaIdentity.FULL,
        columns=(v1.Column(flags=1, name="c", type_id=Oid(25), type_modifier=-1),),
    )
    messages = pa.array([relation.build(), *MESSAGES, TRUNCATE.build()], pa.binary())
    small, _ = decode_batch(messages, SESSION)
    large, _ = decode_batch(messages, SESSION, large=True)
    assert large.schema == batch_schema(SESSION, large=True)
    assert rows_of(large) == rows_of(small)


@pytest.mark.thorough
def test_more_than_2_gib_take_large_types() -> None:
    value = b"v" * (1 << 29)
    message = insert(Text(value), Text(b"end"))
    array = pa.array([message] * 5, pa.large_binary())
    batch, _ = decode_batch(array, SESSION)
    assert batch.schema == batch_schema(SESSION, large=True)
    cells = batch["new"].flatten().field("value")
    assert cells[-2].as_buffer().equals(pa.py_buffer(value))
    assert cells[-1].as_py() == b"end"
    with pytest.raises(ValueError, match="large types"):
        decode_batch(array, SESSION, large=False)


@pytest.mark.thorough
@pytest.mark.skipif(
    os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 20 << 30, reason="its columns take 14 GiB of memory"
)
def test_a_gibibyte_of_small_messages() -> None:
    chunk = pa.array(MESSAGES * 5_000, pa.binary())
    messages = pa.chunked_array([chunk] * 600)
    assert messages.nbytes > 1 << 30
    batch, _ = decode_batch(messages, SESSION)
    assert batch.num_rows == 60_000_000
    first, last = batch[:100_000], batch[-100_000:]
    expected, _ = decode_batch(chunk, SESSION)
    assert first.equals(expected)
    assert last.equals(expected)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"errors": "ignore"}, "errors must be"),
        ({"values": "str"}, "values must be"),
    ],
)
def test_arguments_are_checked(arguments: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        decode_batch(pa.array([], pa.binary()), SESSION, **arguments)


def test_values_as_strings_take_a_session_in_utf8() -> None:
    with pytest.raises(ValueError, match="iso8859-1"):
        decode_batch(pa.array([], pa.binary()), Session(version=1, encoding="latin-1"), values="string")


def test_sessions_are_checked() -> None:
    with pytest.raises(ValueError, match="version 5 is unknown"):
        Session(version=5)
    with pytest.raises(EncodingError, match="no-such-codec"):
        Session(version=1, encoding="no-such-codec")
    assert Session(version=1, encoding="UTF8") == Session(version=1)


def test_threads_decode_side_by_side() -> None:
    batches: dict[int, list[Any]] = {}
    arrays = [pa.array(MESSAGES[number:] * 50, pa.binary()) for number in range(8)]

    def decode(number: int) -> None:
        for _ in range(20):
            batch, _ = decode_batch(arrays[number], SESSION)
            batches.setdefault(number, []).append(batch)

    threads = [threading.Thread(target=decode, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, array in enumerate(arrays):
        expected, _ = decode_batch(array, SESSION)
        assert values_of(expected) == [[str(value).encode(), None] for value in range(number, 20)] * 50
        assert len(batches[number]) == 20
        assert all(batch.equals(expected) for batch in batches[number])
