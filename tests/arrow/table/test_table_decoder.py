"""Wide tables: the rows of each relation as typed columns, equal to each value read by its type's rules."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from logicalrep import DecodeError, Oid, TransactionId, v1, v2
from logicalrep.arrow.table import loading
from logicalrep.arrow.table.table_decoder import DecodedTable, TableDecoder
from logicalrep_protocol.columnar import Session
from logicalrep_protocol.v1 import Binary, NullValue, ReplicaIdentity, Text, TupleData, UnchangedToast
from tests.arrow.expected import parsed, session_of
from tests.protocol.captured import Capture, capture_name, collected, each_selected, read

_NONE, _NULL, _TEXT, _BINARY, _UNCHANGED = 0, ord("n"), ord("t"), ord("b"), ord("u")
SESSION = Session(version=1)


def relation(*columns: tuple[str, int, int], oid: int = 7, name: str = "t", key: int = 1) -> bytes:
    """Return a Relation of columns by name, type and modifier; the first `key` of them are the key."""
    return v1.Relation(
        relation_id=Oid(oid),
        namespace="public",
        name=name,
        replica_identity=ReplicaIdentity.DEFAULT,
        columns=tuple(
            v1.Column(flags=int(index < key), name=column, type_id=Oid(type_oid), type_modifier=modifier)
            for index, (column, type_oid, modifier) in enumerate(columns)
        ),
    ).build()


def insert(*values: bytes | v1.Cell, oid: int = 7) -> bytes:
    cells = [Text(value) if isinstance(value, bytes) else value for value in values]
    return v1.Insert(relation_id=Oid(oid), new=TupleData.of(*cells)).build()


def decode(*messages: bytes, session: Session = SESSION, **options: Any) -> list[DecodedTable]:
    return TableDecoder(session, **options).decode(pa.array(messages, pa.binary()))


def test_columns_have_the_types_of_the_relation() -> None:
    columns = {
        "b": (16, -1, b"t", pa.bool_(), True),
        "i2": (21, -1, b"-32768", pa.int16(), -32768),
        "i4": (23, -1, b"2147483647", pa.int32(), 2147483647),
        "i8": (20, -1, b"-9223372036854775808", pa.int64(), -9223372036854775808),
        "oid": (26, -1, b"4294967295", pa.int64(), 4294967295),
        "f4": (700, -1, b"1.1", pa.float32(), 1.100000023841858),
        "f8": (701, -1, b"-0.25", pa.float64(), -0.25),
        "n": (1700, -1, b"12345678901234567890.5", pa.string(), "12345678901234567890.5"),
        "n10": (1700, 655366, b"-19.90", pa.decimal128(10, 2), Decimal("-19.90")),
        "n38": (1700, (38 << 16) + 4, b"9" * 38, pa.decimal128(38, 0), Decimal("9" * 38)),
        "d": (1082, -1, b"2024-02-29", pa.date32(), datetime.date(2024, 2, 29)),
        "ts": (
            1114,
            -1,
            b"1969-12-31 23:59:59.5",
            pa.timestamp("us"),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 500000),
        ),
        "tz": (
            1184,
            -1,
            b"2024-01-01 00:30:00+02",
            pa.timestamp("us", "UTC"),
            datetime.datetime(2023, 12, 31, 22, 30, tzinfo=datetime.UTC),
        ),
        "u": (2950, -1, b"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", pa.string(), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        "y": (17, -1, rb"\x00ff7A", pa.binary(), b"\0\xffz"),
        "s": (25, -1, "größe".encode(), pa.string(), "größe"),
        "a": (1007, -1, b"{1,2,NULL}", pa.list_(pa.int32()), [1, 2, None]),
    }
    (table,) = decode(
        relation(*((name, *column[:2]) for name, column in columns.items())),
        insert(*(column[2] for column in columns.values())),
    )
    assert {field.name: field.type for field in table.new.values.schema} == {
        name: column[3] for name, column in columns.items()
    }
    assert table.new.values.to_pylist() == [{name: column[4] for name, column in columns.items()}]
    assert table.new.unfit == {}
    assert (str(table.relation), table.rows.to_pylist(), table.tags.to_pylist()) == ("public.t", [1], ["I"])


def test_the_five_states_of_a_value_stay_distinct() -> None:
    described = relation(("id", 23, -1), ("s", 25, -1))
    key = v1.Delete(relation_id=Oid(7), old_kind="K", old=TupleData.of(Text(b"1"), NullValue())).build()
    whole = v1.Update(
        relation_id=Oid(7),
        old_kind="O",
        old=TupleData.of(Text(b"1"), NullValue()),
        new=TupleData.of(Text(b"2"), UnchangedToast()),
    ).build()
    (table,) = decode(described, insert(b"1", b""), key, whole)
    assert table.old_kinds.to_pylist() == [None, "K", "O"]
    assert table.new.values["s"].to_pylist() == ["", None, None]
    assert table.new.states["s"].to_pylist() == [_TEXT, _NONE, _UNCHANGED]
    assert table.old.values.to_pylist() == [{"id": None, "s": None}, {"id": 1, "s": None}, {"id": 1, "s": None}]
    assert table.old.states["id"].to_pylist() == [_NONE, _TEXT, _TEXT]
    assert table.old.states["s"].to_pylist() == [_NONE, _NONE, _NULL]


def test_a_key_has_what_was_sent_of_it_flagged_or_not() -> None:
    """A partition may have another replica identity than its root."""
    described = relation(("a", 23, -1), ("b", 23, -1), ("c", 25, -1), ("d", 1186, -1))
    null = NullValue()
    keys = [
        (Text(b"1"), null, null, null),
        (null, Text(b"20"), null, null),
        (null, null, Text(b"c"), Text(b"1 day")),
        (null, Binary(b"\0\0\0\7"), null, null),
    ]
    deletes = [v1.Delete(relation_id=Oid(7), old_kind="K", old=TupleData.of(*key)).build() for key in keys]
    whole = v1.Delete(relation_id=Oid(7), old_kind="O", old=TupleData.of(Text(b"2"), *(null,) * 3)).build()
    (table,) = _check_both([described, *deletes, whole, insert(*(b"3", b"4", b"", b"0"))], SESSION)
    assert table.old.values.drop_columns("d").to_pylist() == [
        {"a": 1, "b": None, "c": None},
        {"a": None, "b": 20, "c": None},
        {"a": None, "b": None, "c": "c"},
        {"a": None, "b": 7, "c": None},
        {"a": 2, "b": None, "c": None},
        {"a": None, "b": None, "c": None},
    ]
    assert table.old.values["d"].is_valid().to_pylist() == [False, False, True, False, False, False]
    assert [column.to_pylist() for column in table.old.states.columns] == [
        [_TEXT, _NULL, _NULL, _NULL, _TEXT, _NONE],
        [_NONE, _TEXT, _NONE, _BINARY, _NULL, _NONE],
        [_NONE, _NONE, _TEXT, _NONE, _NULL, _NONE],
        [_NONE, _NONE, _TEXT, _NONE, _NULL, _NONE],
    ]


def test_columns_that_are_to_be_text_are_what_was_sent() -> None:
    described = relation(("at", 1114, -1), ("n", 23, -1), ("i", 23, -1))
    messages = described, insert(b"infinity", b"007", b"1"), insert(v1.Binary(bytes(8)), v1.Binary(b"\0\0\0\7"), b"2")
    (table,) = decode(*messages, text_columns={"at", "n"})
    assert table.new.values.to_pylist() == [
        {"at": "infinity", "n": "007", "i": 1},
        {"at": "2000-01-01 00:00:00", "n": "7", "i": 2},
    ]
    assert table.new.unfit == {}


def test_rows_of_other_tables_are_checked_and_left_out() -> None:
    described = relation(("i", 23, -1)), relation(("i", 23, -1), oid=8, name="other")
    tables = TableDecoder(SESSION, wanted=lambda table: table.name == "t")
    decoded_tables = tables.decode(pa.array([*described, insert(b"1", oid=8), insert(b"2")], pa.binary()))
    assert [(str(table.relation), table.rows.to_pylist()) for table in decoded_tables] == [("public.t", [3])]
    assert decoded_tables[0].new.values.to_pylist() == [{"i": 2}]
    assert tables.decode(pa.array([insert(b"3", oid=8)], pa.binary())) == []
    assert {relation.name for relation in tables.relations.values()} == {"t", "other"}
    with pytest.raises(DecodeError, match=r"column_count at offset 6: expected 1 values"):
        tables.decode(pa.array([insert(b"4"), insert(b"5", b"6", oid=8)], pa.binary()))


def test_what_the_arrow_type_cannot_hold_is_kept_as_text() -> None:
    columns = [
        (1082, b"infinity"),
        (1114, b"0044-03-15 00:00:00 BC"),
        (1184, b"294276-12-31 23:59:59.999999+00"),
        (1184, b"1890-01-01 00:00:00+01:12:12"),
        (700, b"NaN"),
        (23, b"12x"),
        (25, b"\xff"),
        (16, b"true"),
        (2950, b"A0EEBC999C0B4EF8BB6D6BB9BD380A11"),
    ]
    names = [f"c{index}" for index in range(len(columns))]
    described = relation(*((name, oid, -1) for name, (oid, _) in zip(names, columns, strict=True)), ("n", 1700, 262152))
    (table,) = decode(described, insert(*(value for _, value in columns), b"NaN"), insert(*[NullValue()] * 10))
    assert {name: texts[0] for name, texts in table.new.unfit.items()} == {
        "c0": "infinity",
        "c2": "294276-12-31 23:59:59.999999+00",
        "c5": "12x",
        "c6": "\\xff",
        "c7": "true",
        "c8": "A0EEBC999C0B4EF8BB6D6BB9BD380A11",
        "n": "NaN",
    }
    values = table.new.values
    assert [name for name in values.schema.names if values[name][0].is_valid] == ["c1", "c3", "c4"]
    # Arrow can hold values that datetime cannot.
    assert values["c1"].view(pa.int64())[0].as_py() == -63517824000000000
    assert values["c3"][0].as_py() == datetime.datetime(1889, 12, 31, 22, 47, 48, tzinfo=datetime.UTC)
    assert str(values["c4"][0].as_py()) == "nan"
    assert table.new.states["c0"].to_pylist() == [_TEXT, _NULL]


def test_a_change_of_the_schema_within_a_batch_is_right_on_both_sides() -> None:
    old_relation, new_relation = (
        relation(("id", 23, -1), ("x", 25, -1)),
        relation(("id", 20, -1), ("y", 25, -1), ("z", 16, -1)),
    )
    other = relation(("o", 25, -1), oid=8, name="other")
    wide = TableDecoder(SESSION)
    messages = [old_relation, insert(b"1", b"a"), old_relation, insert(b"2", b"b"), other, insert(b"o", oid=8)]
    messages += [new_relation, insert(b"3", b"c", b"t"), insert(b"p", oid=8)]
    tables = wide.decode(pa.array(messages, pa.binary()))
    assert [(str(table.relation), table.rows.to_pylist()) for table in tables] == [
        ("public.t", [1, 3]),
        ("public.other", [5, 8]),
        ("public.t", [7]),
    ]
    assert tables[0].new.values.to_pylist() == [{"id": 1, "x": "a"}, {"id": 2, "x": "b"}]
    assert tables[2].new.values.to_pylist() == [{"id": 3, "y": "c", "z": True}]
    # The next batch uses the last of these descriptions.
    (table,) = wide.decode(pa.array([insert(b"4", b"d", b"f")], pa.binary()))
    assert table.new.values.to_pylist() == [{"id": 4, "y": "d", "z": False}]


def test_rows_of_streamed_transactions_have_their_ids() -> None:
    xid = TransactionId(4_000_000_000)
    described = relation(("id", 23, -1))
    streamed = b"R" + xid.to_bytes(4, "big") + described[1:]
    row = v2.Insert(xid=xid, relation_id=Oid(7), new=TupleData.of(Text(b"1"))).build()
    start, stop = v2.StreamStart(xid=xid, first_segment=True).build(), v2.StreamStop().build()
    wide = TableDecoder(Session(version=2))
    (table,) = wide.decode(pa.array([start, streamed, row, stop, insert(b"2"), start, row], pa.binary()))
    assert table.xids.to_pylist() == [4_000_000_000, None, 4_000_000_000]
    assert table.new.values["id"].to_pylist() == [1, 2, 1]
    assert wide.session.streaming


def test_a_row_without_a_relation_is_an_error_with_its_row() -> None:
    wide = TableDecoder(SESSION)
    with pytest.raises(
        DecodeError, match=r"relation_id at offset 1: expected a table that a Relation has described"
    ) as caught:
        wide.decode(pa.array([relation(("id", 23, -1), oid=9), insert(b"1")], pa.binary()))
    assert caught.value.row == 1  # type: ignore[attr-defined]
    assert wide.relations == {}


def test_truncates_name_the_tables_as_they_are_described_there() -> None:
    wide = TableDecoder(SESSION)
    truncate = v1.Truncate(options=0, relation_ids=(Oid(9), Oid(7))).build()
    first, other = relation(("id", 23, -1)), relation(("id", 23, -1), oid=9, name="other")
    wide.decode(pa.array([first, other, truncate, relation(("id", 23, -1), name="renamed"), truncate], pa.binary()))
    names = {row: [table.name for table in tables] for row, tables in wide.truncated.items()}
    assert names == {2: ["other", "t"], 4: ["other", "renamed"]}
    wide.decode(pa.array([insert(b"1")], pa.binary()))
    assert wide.truncated == {}
    unknown = v1.Truncate(options=0, relation_ids=(Oid(7), Oid(8))).build()
    with pytest.raises(DecodeError, match=r"Truncate: relation_ids\[1\] at offset 10: expected a table that .* OID 8"):
        wide.decode(pa.array([unknown], pa.binary()))


def test_a_row_of_another_width_is_an_error_with_its_row() -> None:
    with pytest.raises(DecodeError, match=r"new.column_count at offset 6: expected 1 values") as caught:
        decode(relation(("id", 23, -1)), insert(b"1"), insert(b"1", b"2"))
    assert caught.value.row == 2  # type: ignore[attr-defined]


def test_strings_are_as_they_were_sent() -> None:
    described = relation(("d", 1082, -1), ("i", 23, -1), ("n", 1700, 655366))
    (table,) = decode(
        described,
        insert(b"infinity", b"007", b"1.5"),
        insert(NullValue(), Binary((7).to_bytes(4, "big")), b"x"),
        typed=False,
    )
    assert table.new.values.to_pylist() == [
        {"d": "infinity", "i": "007", "n": "1.5"},
        {"d": None, "i": "7", "n": "x"},
    ]
    assert {str(field.type) for field in table.new.values.schema} == {"string"}


@pytest.mark.slow
@pytest.mark.parametrize("tables", [3, pytest.param(2000, marks=pytest.mark.thorough), 2100])
def test_many_tables_at_once(tables: int) -> None:
    oids = [(number * 2654435761) % (1 << 32) for number in range(tables)]
    described = [relation(("id", 23, -1), oid=oid, name=f"t{oid}") for oid in oids]
    rows = [insert(str(number).encode(), oid=oids[number * 11 % tables]) for number in range(5000)]
    decoded_tables = _check_both([*described, *rows], SESSION)
    assert len(decoded_tables) == tables
    for table in decoded_tables:
        expected = [number for number in range(5000) if oids[number * 11 % tables] == table.relation.relation_id]
        assert table.new.values["id"].to_pylist() == expected
        assert table.rows.to_pylist() == [tables + number for number in expected]


def test_relations_without_columns_and_batches_without_rows() -> None:
    (table,) = decode(relation(), insert(), insert())
    assert (table.new.values.num_rows, table.new.values.num_columns, table.rows.to_pylist()) == (2, 0, [1, 2])
    assert decode() == []
    assert decode(relation()) == []


def test_one_batch_of_everything() -> None:
    (table,) = decode(relation(("id", 23, -1)), insert(b"1"))
    assert table.batch().to_pylist() == [
        {
            "row": 1,
            "tag": "I",
            "xid": None,
            "old_kind": None,
            "old": {"id": None},
            "old_states": {"id": 0},
            "new": {"id": 1},
            "new_states": {"id": 116},
        }
    ]


@pytest.mark.parametrize(
    ("type_oid", "modifier", "texts"),
    [
        pytest.param(21, -1, "0 -0 1 -1 32767 32768 -32768 -32769 00012 +1 - 1.0", id="smallint"),
        pytest.param(23, -1, "2147483647 2147483648 -2147483648 -2147483649 123456789 1e3", id="integer"),
        pytest.param(20, -1, "99999999 123456789012345678 9223372036854775807 9223372036854775808", id="bigint"),
        pytest.param(26, -1, "0 4294967295 4294967296 -1", id="oid"),
        pytest.param(16, -1, "t f true T 1", id="boolean"),
        pytest.param(
            701, -1, "0 -0 1 -1.5 0.1 1e10 1e400 NaN -Infinity .5 5. 123456789012345678 0.30000000000000004 1-2", id="double"
        ),
        pytest.param(700, -1, "0 0.1 1.1 16777217 3.4028235e+38 1e39 0.000001 7.038531e-26 1.00000017881393432", id="real"),
        pytest.param(
            1700, 655366, "0.00 -0.00 12345678.90 123456789.00 1.5 1 1.555 NaN -0.01 .50 5. 99999999.99 1..5", id="numeric(10,2)"
        ),
        pytest.param(1700, (20 << 16) + 10 + 4, "1.0000000000 9999999999.9999999999 123456789.0123456789 -0.5", id="numeric(20,10)"),
        pytest.param(
            1700, (18 << 16) + 8 + 4, "0.00000001 -1234567.12345678 9999999.99999999 12345678.12345678 1.2345678 1.2345x78", id="numeric(18,8)"
        ),
        pytest.param(1700, (3 << 16) + 4, "999 1000 -999 1.0 007", id="numeric(3,0)"),
        pytest.param(1700, (2 << 16) + 5 + 4, "0.00012 0.001", id="numeric(2,5)"),
        pytest.param(1700, -1, "1 0 00 01 -0.5 0.5 1.50 1234567.890123456789 1..2 . -. - 1. .1 NaN 1e5 Infinity", id="numeric"),
        pytest.param(1082, -1, "2000-02-29 1900-02-29 2024-13-01 2024-04-31 0001-01-01 9999-12-31 10000-01-01 0000-01-01 infinity 2024/01/01", id="date"),
        pytest.param(2950, -1, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 A0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 x", id="uuid"),
        pytest.param(17, -1, r"\x \x00 \x0g \x0 abc \\ \001 \xAB", id="bytea"),
        pytest.param(25, -1, f"a 12345678 123456789 é {'b' * 63} {'c' * 64} {'d' * 65} e", id="text"),
    ],
)  # fmt: skip
def test_native_loaders_and_those_of_the_types_agree(type_oid: int, modifier: int, texts: str) -> None:
    _check_texts(type_oid, modifier, [text.encode() for text in texts.split()])


@pytest.mark.parametrize("type_oid", [1114, 1184])
def test_timestamps(type_oid: int) -> None:
    days = ["2024-02-29", "2023-02-29", "0001-01-01", "9999-12-31", "10000-01-01", "2024-1-01", "2024-00-10"]
    clocks = ["00:00:00", "23:59:59.999999", "24:00:00", "12:60:00", "12:00:60", "1:00:00", "12:00:00.", "12:00:00.1"]
    zones = ["", "+00", "-15", "+16", "+05:30", "+01:12:12", "00", "+1", " BC"]
    texts = [f"{day} {clock}{zone}" for day in days for clock in clocks for zone in zones]
    _check_texts(type_oid, -1, [text.encode() for text in [*texts, "infinity", "-infinity", "2024-02-29T00:00:00"]])


def test_texts_that_are_utf8_or_are_not() -> None:
    # A text that is invalid by itself may be valid together with the next, with which it is copied.
    split = [b"\xc3", b"\xa9", b"ab\xe2\x82", b"\xac", b"\xf0\x9f\x99", b"\x82", b"\xe2", b"\x82\xac"]
    wrong = [
        b"\xc0\x80",
        b"\xc1\xbf",
        b"\xe0\x9f\xbf",
        b"\xed\xa0\x80",
        b"\xf0\x8f\xbf\xbf",
        b"\xf4\x90\x80\x80",
        b"\xf5",
    ]
    right = [
        "\x7f\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff".encode(),
        "größe 🙂 ".encode() * 20,
        b"plain" * 40,
    ]
    chance = random.Random(1)
    characters = ["a", "é", "€", "🙂", "\u07ff", "\U0010ffff"]
    for number in range(300):
        texts = ["".join(chance.choices(characters, k=chance.randrange(40))).encode() for _ in range(20)]
        if number % 3:
            damaged = bytearray(chance.choice(texts) + b".")
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
            texts.insert(chance.randrange(20), bytes(damaged))
        _check_both([relation(("c", 25, -1)), *map(insert, texts)], SESSION)
    # These texts are cut off at the end of the bytes that are checked together.
    for end in (b"\xc3", b"\xe2", b"\xe2\x82", b"\xf0", b"\xf0\x9f", b"\xf0\x9f\x99"):
        _check_both([relation(("c", 25, -1)), insert(b"x" * (32 - len(end)) + end)], SESSION)
    for text in [*split, *wrong, *right]:
        for texts in ([text], [b"", text, b"x"], [b"x" * 31, text, *right]):
            _check_both([relation(("c", 25, -1)), *map(insert, texts)], SESSION)
    _check_both(
        [relation(("c", 25, -1), ("d", 25, -1)), *(insert(half, other) for half in split for other in split)], SESSION
    )


def _check_texts(type_oid: int, modifier: int, texts: list[bytes]) -> None:
    described = relation(("c", type_oid, modifier), ("last", 25, -1))
    for values in (texts, texts[::-1]):
        _check_both([described, *(insert(text, b"") for text in values)], SESSION)
    for text in texts:
        # The value is at the very end of the data, where nothing can be read beyond it.
        _check_both([relation(("c", type_oid, modifier)), insert(text)], SESSION)


def _check_both(messages: list[bytes], session: Session, **options: Any) -> list[DecodedTable]:
    """Check that the native loaders and the loaders of the types give the same tables, and return these."""
    array = pa.array(messages, pa.binary())
    tables = TableDecoder(session, **options).decode(array)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "native_module", lambda: None)
        by_type = TableDecoder(session, **options).decode(array)
    assert len(tables) == len(by_type)
    for table, other in zip(tables, by_type, strict=True):
        assert table.relation == other.relation
        assert table.batch().schema == other.batch().schema
        table.batch().validate(full=True)
        for mine, theirs in ((table.old, other.old), (table.new, other.new)):
            assert mine.states.equals(theirs.states)
            assert mine.unfit == theirs.unfit
            for name, values, expected in zip(mine.values.schema.names, mine.values, theirs.values, strict=True):
                assert _same(values, expected), name
    return tables


def _same(array: pa.Array, other: pa.Array) -> bool:
    """Return whether arrays are equal; NaN equals NaN, and 0 does not equal -0."""
    if pa.types.is_floating(array.type):
        bits = pa.int32() if array.type == pa.float32() else pa.int64()
        return array.view(bits).equals(other.view(bits))
    return array.equals(other) or repr(array.to_pylist()) == repr(other.to_pylist())


@pytest.mark.parametrize("path", each_selected())
def test_captures_as_strings(path: Path) -> None:
    capture = read(path)
    _check_against_parse(capture, _check_both(list(capture.messages), session_of(capture), typed=False))


@pytest.mark.thorough
@pytest.mark.parametrize("path", collected(), ids=capture_name)
def test_the_corpus(path: Path) -> None:
    capture = read(path)
    session = session_of(capture)
    for options in ({}, {"for_spark": True}):
        _check_both(list(capture.messages), session, **options)
    _check_against_parse(capture, _check_both(list(capture.messages), session, typed=False))


def _check_against_parse(capture: Capture, tables: list[DecodedTable]) -> None:
    """Compare the tables, the states, and the texts of wide tables of strings with `parse`."""
    messages = list(parsed(capture.messages, session_of(capture)))
    described: dict[int, Any] = {}
    relation_of = {}
    for row, message in enumerate(messages):
        if message.tag == "R":
            described[message.relation_id] = message
        elif message.tag in "IUD":
            relation_of[row] = described[message.relation_id]
    assert sorted(row for table in tables for row in table.rows.to_pylist()) == list(relation_of)
    for table in tables:
        row_numbers = table.rows.to_pylist()
        assert row_numbers == sorted(row_numbers)
        assert table.tags.to_pylist() == [messages[row].tag for row in row_numbers]
        assert table.xids.to_pylist() == [getattr(messages[row], "xid", None) for row in row_numbers]
        assert table.old_kinds.to_pylist() == [getattr(messages[row], "old_kind", None) for row in row_numbers]
        in_key = [column.key for column in table.relation.columns]
        for index, row in enumerate(row_numbers):
            message = messages[row]
            expected = relation_of[row]
            assert (table.relation.relation_id, table.relation.name) == (expected.relation_id, expected.name)
            assert table.relation.columns == expected.columns
            for name, rows in (("old", table.old), ("new", table.new)):
                cells = getattr(message, name, None)
                is_key = name == "old" and getattr(message, "old_kind", None) == "K"
                for number, column in enumerate(table.relation.columns):
                    kind = _NONE if cells is None else cells.kinds[number]
                    if is_key and not in_key[number] and kind == _NULL:
                        kind = _NONE
                    assert rows.states.column(number)[index].as_py() == kind
                    value = rows.values.column(number)[index].as_py()
                    if kind == _TEXT and index not in rows.unfit.get(column.name, {}):
                        assert cells is not None
                        assert value == cells.values[number].decode(capture.encoding)
                    elif kind != _BINARY:
                        assert value is None or kind == _TEXT
