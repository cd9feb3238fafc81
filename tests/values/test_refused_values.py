"""Values that do not fit their types: each raises the one error, soon."""

from __future__ import annotations

import pickle
import random
import struct
import time
import tracemalloc
from dataclasses import dataclass
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logicalrep.values import Column, ColumnType, ColumnValueError, column_type
from logicalrep.values.table import TABLE
from tests.values.value_literals import LITERALS


@dataclass
class Announced:
    namespace: str
    name: str


TYPES = {
    20001: Announced("public", "pair"),
    20002: Announced("public", "_pair"),
    20003: Announced("public", "hstore"),
    20004: Announced("public", "_hstore"),
    20005: Announced("public", "ltree"),
}
OIDS = [oid for row in TABLE for oid in (row.oid, row.array_oid)] + list(TYPES)


@pytest.mark.parametrize(
    ("oid", "modifier", "texts"),
    [
        (16, -1, ["", "true", "T", "1", "f ", "tt"]),
        (21, -1, ["", "32768", "-32769", " 1", "1_0", "+1", "0x10", "1.0", "\u0661", "9" * 5000]),
        (23, -1, ["2147483648", "1e3", "--1", "-"]),
        (20, -1, ["9223372036854775808", "-9223372036854775809"]),
        (26, -1, ["-1", "4294967296"]),
        (5069, -1, ["-1", "18446744073709551616"]),
        (700, -1, ["", "1_0", "nan", "inf", "1e39", "1e-50", "-1e-46", "0x1p3", "1,5", "+1", ".5"]),
        (701, -1, ["1e400", "1e-400", "-1e-400", "infinity", "1e", "NaN "]),
        (1700, -1, ["", "1e5", "1,000", "1 000", "+1", "nan", ".5", "5.", "-", "Inf", "\u0661", "-NaN"]),
        (1700, (10 << 16 | 2) + 4, ["100000000", "-100000000.00", "0.001", "Infinity", "19,90"]),
        (1700, (5 << 16 | 0x7FE) + 4, ["10000000", "1234510", "100.0", "1"]),
        (1700, (3 << 16 | 5) + 4, ["0.01", "0.000001", "1"]),
        (17, -1, ["\\x0", "\\x0g", "\\x0 1", "\\1", "\\", "\\400", "é", "a\n", "\\xA\u0661"]),
        (18, -1, ["ab", "\\12", "\\400"]),
        (1560, 5, ["1011", "101101", "1012a", ""]),
        (1562, 5, ["101101", "2"]),
        (1082, -1, ["", "01.02.2003", "01/02/2003", "01-02-2003", "2003-13-01", "2003-02-30", "0000-01-01", "20030201"]),
        (1082, -1, ["2003-2-1", "2003-02-01 AD", "5874898-01-01", "4714-11-23 BC", "Infinity", "2003-W01-1", "2003-02-01 "]),
        (1083, -1, ["24:00:01", "25:00:00", "23:60:00", "23:59:60", "1:00:00", "01:00", "01:00:00+00", "01:00:00.1234567"]),
        (1266, -1, ["01:00:00", "01:00:00+16", "01:00:00+1", "01:00:00+01:60", "01:00:00 CET"]),
        (1114, -1, ["2003-02-01", "01.02.2003 00:00:00", "Sat Feb 01 00:00:00 2003", "2003-02-01T00:00:00"]),
        (1114, -1, ["2003-02-01 24:00:00", "2003-02-01 00:00:00+00", "294277-01-01 00:00:00", "2003-02-01 00:00:00.1234567"]),
        (1184, -1, ["2003-02-01 00:00:00", "01.02.2003 05:30:00 IST", "2003-02-01 00:00:00 IST", "2003-02-01 00:00:00Z"]),
        (1186, -1, ["", "P1Y", "@ 1 day", "1-2", "1 2:03:04", "1 day 2:03:04", "1 fortnight", "00:60:00", "1 day ago"]),
        (1186, -1, ["178956971 years", "-2147483649 days", "9999999999:00:00", " 1 day", "1 day  2 mons"]),
        (2950, -1, ["", "a0eebc999c0b4ef8bb6d6bb9bd380a11", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}", "x" * 36]),
        (869, -1, ["", "1.2.3", "1.2.3.256", "1.2.3.4/33", "::1/129", "1.2.3.4/255.0.0.0", "fe80::1%eth0", "01.2.3.4"]),
        (650, -1, ["10.0.0.1/8", "10.0.0.0", "10.0.0.0/33"]),
        (829, -1, ["08:00:2b:01:02", "08002b010203", "08:00:2b:01:02:0g"]),
        (600, -1, ["(1)", "1,2", "(1,2", "(a,b)", "(1,2,3)", "(1e999,0)"]),
        (628, -1, ["{1,2}", "(1,2,3)"]),
        (602, -1, ["[]", "[(1,2)", "[(1,2)(3,4)]", "{(1,2)}"]),
        (718, -1, ["<(1,2)>", "((1,2),3)"]),
        (3904, -1, ["", "[1,2", "1,2)", "[1]", "[a,b)", "[,2)", "(1,]", "[1,2)x", "empty ", '["1""",2)', "(1,2,3)"]),
        (4451, -1, ["", "{", "{[1,2)", "{[1,2)[3,4)}", "{[1,2),}", "{empty}", "[1,2)"]),
        (1007, -1, ["", "1", "{", "}", "{1", "{1,}", "{,1}", "{1}}", "{{1}", "{{1},2}", "{1,{2}}", "{{1},{2,3}}", "{a}"]),
        (1007, -1, ["{{}}", "{1}{2}", "[0:2]={1,2}", "[0:1]=", "[0:1]={}", "[1:1][1:2]={1,2}", "{{{{{{{1}}}}}}}", "{1 2}"]),
        (1009, -1, ['{"a}', '{"a"b}', '{a"b}', '{"a\\"}', "{a\\}", "{a b}"]),
        (20003, -1, ["a=>1", '"a"', '"a"=>', '"a"=>"1",', '"a"=>"1","b"=>"2"', '"a"=>"1", "a"=>"2"', '"a"=>null']),
        (22, -1, ["1  2", "1,2", "40000"]),
        (3220, -1, ["0", "0/", "g/0", "123456789/0"]),
        (27, -1, ["0,1", "(0)", "(a,b)"]),
    ],
)  # fmt: skip
def test_text(oid: int, modifier: int, texts: list[str]) -> None:
    column = column_type(oid, modifier, TYPES)
    for text in texts:
        with pytest.raises(ColumnValueError) as caught:
            print(text, column.load("t", text.encode()))
        assert caught.value.text == text
        assert caught.value.type_name == column.name


def headed(*numbers: int) -> str:
    return struct.pack(f"!{len(numbers)}i", *numbers).hex()


@pytest.mark.parametrize(
    ("oid", "binaries"),
    [
        (16, ["", "02", "0000"]),
        (23, ["", "00", "000000", "0000000001"]),
        (20, ["00000001"]),
        (701, ["00000000"]),
        (1700, ["", "0000", "0001000000000000", "00010000000000002710", "0000000012340000", "0001000000004000"]),
        (1700, ["00000000c0000000ff", "0001000000000000000100", "0001ffff000000000001", "00010000c00000000001"]),
        (18, ["", "0000"]),
        (25, ["ff", "c3"]),
        (3802, ["", "02", "017bff"]),
        (1082, ["000000", headed(2145031949), headed(-2451546)]),
        (1114, ["7fffff5bb3b2a000", "fd0f7cc1411f9fff"]),
        (1083, ["ffffffffffffffff", "000000141dd76001"]),
        (1266, ["0000000000000000" + headed(57600), "0000000000000000"]),
        (1186, ["00" * 15]),
        (2950, ["00" * 15]),
        (869, ["", "02200004", "022000040a0000", "02210004" + "00" * 4, "04200004" + "00" * 4, "02200104" + "00" * 4]),
        (650, ["020801040a000001", "020800040a000000"]),
        (829, ["00" * 7]),
        (1560, ["", headed(8), headed(9) + "ff", headed(-1), headed(5) + "ff", headed(2**31 - 1)]),
        (602, ["02" + headed(1) + "00" * 16, "00" + headed(2**28), "00" + headed(-1), "00" + headed(0)]),
        (604, [headed(2) + "00" * 16]),
        (3614, [headed(1), headed(2**30), headed(-1), headed(1) + "61" + "00" + "ffff"]),
        (3615, [headed(1), headed(1) + "0201", headed(1) + "0205", headed(2) + "010000610001000062" + "00", headed(1) + "03"]),
        (3904, ["", "02", "01ff", "22", "18ff", "0a" + headed(4, 1), "02" + headed(-1, 4, 1), "02" + headed(2**31 - 1), "82"]),
        (4451, [headed(1), headed(-1), headed(2**30), headed(1, 1) + "01", headed(1, -1)]),
        (1007, [headed(1), headed(7, 0, 23), headed(-1, 0, 23), headed(1, 2, 23, 1, 1, 4, 1), headed(0, 0, 25)]),
        (1007, [headed(1, 0, 23, 2**31 - 1, 1), headed(1, 0, 23, -1, 1), headed(1, 0, 23, 0, 1), headed(1, 0, 23, 1, 1, -1)]),
        (1007, [headed(6, 0, 23, *[2**31 - 1, 1] * 6), headed(1, 0, 23, 1, 1, 4, 1, 0), headed(1, 0, 23, 1, 1, 2**31 - 1)]),
        (20001, [headed(0), headed(1), headed(1, 55555, 0), headed(1, 23, 2) + "0000", "00", "61" * 64, "0a"]),
        (20002, [headed(1, 0, 55555, 1, 1, 1) + "61"]),
        (20003, ["", headed(-1), headed(1), headed(1, -1, -1), headed(1, 1) + "61", headed(2, 0, -1, 0, -1)]),
        (20005, ["", "02", "61"]),
        (22, [headed(1, 0, 21, 1, 1, 2) + "0001", headed(1, 0, 23, 1, 0, 2) + "0001", headed(1, 1, 21, 1, 0, -1)]),
        (2970, [headed(-2), headed(-1) + "00" * 8, headed(1) + "00" * 16]),
    ],
)  # fmt: skip
def test_binary(oid: int, binaries: list[str]) -> None:
    column = column_type(oid, -1, TYPES)
    for binary in binaries:
        with pytest.raises(ColumnValueError) as caught:
            print(binary, column.load("b", bytes.fromhex(binary)))
        assert caught.value.text == f"\\x{binary}"


def refuse_or_load(column: ColumnType, kind: str, value: bytes) -> None:
    try:
        loaded = column.load(kind, value)
    except ColumnValueError:
        return
    # A loaded value has a text, and the text loads as a value.
    assert isinstance(column.to_text(loaded), str)


@pytest.mark.parametrize("literal", LITERALS, ids=[f"{literal.name} {literal.text[:20]}" for literal in LITERALS])
def test_damaged_literals(literal) -> None:  # type: ignore[no-untyped-def]
    column = column_type(literal.oid, literal.modifier, lc_monetary="C")
    choose = random.Random(literal.text)
    for kind, original in (("b", bytes.fromhex(literal.binary)), ("t", literal.text.encode())):
        for length in range(len(original)):
            refuse_or_load(column, kind, original[:length])
        for _ in range(20):
            damaged = bytearray(original)
            for _ in range(choose.randint(1, 3)):
                position = choose.randint(0, len(damaged))
                what = choose.random()
                if what < 0.5 and position < len(damaged):
                    damaged[position] = choose.choice((0, 1, 0x7F, 0x80, 0xFF, choose.randrange(256)))
                elif what < 0.75:
                    damaged[position:position] = choose.randbytes(choose.randint(1, 4))
                else:
                    del damaged[position : position + choose.randint(1, 4)]
            refuse_or_load(column, kind, bytes(damaged))


@given(st.sampled_from(OIDS), st.sampled_from("tb"), st.binary(max_size=60))
def test_any_bytes(oid: int, kind: str, value: bytes) -> None:
    refuse_or_load(column_type(oid, -1, TYPES), kind, value)


# --- values made to hurt ---------------------------------------------------------------------------------------


def nested_record(depth: int, oid: int, inner: bytes) -> bytes:
    return _nested(struct.pack("!iI", 1, oid), depth, inner)


def nested_array(depth: int, oid: int, inner: bytes) -> bytes:
    return _nested(struct.pack("!iiIii", 1, 0, oid, 1, 1), depth, inner)


def _nested(head: bytes, depth: int, inner: bytes) -> bytes:
    """Return values in values, each the head and the length of what follows."""
    lengths = (len(inner) + (len(head) + 4) * deeper for deeper in reversed(range(depth)))
    return b"".join(head + struct.pack("!i", length) for length in lengths) + inner


NUMERIC_OF_131072_DIGITS = bytes.fromhex("00017fff000000000001")
HOSTILE = {
    "many open braces": (1007, "t", b"{" * 1_000_000),
    "many quotes": (1009, "t", b'{"' + b'\\"' * 500_000),
    "many elements without an end": (1007, "t", b"{" + b"1," * 100_000),
    "many ranges without an end": (4451, "t", b"{" + b"[1,2)," * 100_000),
    "quotes in a range": (3904, "t", b'["' + b'""' * 500_000),
    "backslashes in hstore": (20003, "t", b'"' + b"\\" * 1_000_001),
    "many digits": (23, "t", b"9" * 1_000_000),
    "many digits of a float": (701, "t", b"9" * 1_000_000),
    "a huge exponent": (701, "t", b"1e" + b"9" * 1_000_000),
    "many points without an end": (602, "t", b"[" + b"(1,2)," * 100_000),
    "many blanks": (1186, "t", b" " * 1_000_000),
    "records in records": (20001, "b", nested_record(50_000, 20001, b"x")),
    "records of quotes": (20001, "b", nested_record(15, 20001, struct.pack("!iIi", 1, 25, 100_000) + b'"' * 100_000)),
    "arrays in arrays": (20002, "b", nested_array(30_000, 20002, b"")),
    "long numerics in a record": (
        20001,
        "b",
        struct.pack("!i", 30_000) + 30_000 * (struct.pack("!Ii", 1700, 10) + NUMERIC_OF_131072_DIGITS),
    ),
    "a tsquery of many operators without operands": (3615, "b", struct.pack("!i", 100_000) + b"\2\1" * 100_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_values_are_refused_soon(name: str) -> None:
    oid, kind, value = HOSTILE[name]
    column = column_type(oid, -1, TYPES)
    started = time.process_time()
    with pytest.raises(ColumnValueError):
        column.load(kind, value)
    assert time.process_time() - started < 5


@pytest.mark.parametrize("name", ["records of quotes", "long numerics in a record", "arrays in arrays"])
def test_hostile_values_take_little_memory(name: str) -> None:
    oid, kind, value = HOSTILE[name]
    column = column_type(oid, -1, TYPES)
    tracemalloc.start()
    try:
        with pytest.raises(ColumnValueError):
            column.load(kind, value)
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


def test_a_long_tsquery_takes_linear_time() -> None:
    count = 100_000
    value = struct.pack("!i", count + 1) + b"\2\1" * count + b"\1\0\0a\0"
    assert column_type(3615).load("b", value) == "!" * count + "'a'"


def test_long_numerics_stay_small() -> None:
    value = struct.pack("!iiIii", 1, 0, 1700, 1000, 1) + 1000 * (struct.pack("!i", 10) + NUMERIC_OF_131072_DIGITS)
    tracemalloc.start()
    try:
        numbers = column_type(1231).load("b", value)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert numbers == [Decimal("1E+131068")] * 1000


# --- the error -------------------------------------------------------------------------------------------------


def test_the_error_names_table_column_type_and_value() -> None:
    column = Column("price", column_type(1700, 655366), table="public.item")
    with pytest.raises(ColumnValueError) as caught:
        column.load("t", b"19,90")
    error = caught.value
    assert str(error) == "[COLUMN_VALUE] public.item.price: '19,90' (text format, type numeric(10,2)): not a number"
    assert (error.table, error.column, error.type_name, error.text, error.kind) == (
        "public.item",
        "price",
        "numeric(10,2)",
        "19,90",
        "t",
    )
    assert isinstance(error, ValueError)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert pickle.loads(pickle.dumps(error)).text == "19,90"


def test_long_values_are_cut_in_the_message_only() -> None:
    value = b"x" * 1_000_000
    with pytest.raises(ColumnValueError) as caught:
        column_type(23).load("t", value)
    assert len(str(caught.value)) < 300
    assert "(1000000 characters)" in str(caught.value)
    assert len(caught.value.text) == 1_000_000


def test_the_kind_can_be_a_byte() -> None:
    column = Column("c", column_type(23))
    assert column.load(b"t"[0], b"1") == column.load(b"b"[0], b"\0\0\0\1") == column.type.load(ord("t"), b"1") == 1


@pytest.mark.parametrize("kind", ["n", "u", "", ord("n")])
def test_kinds_without_bytes_are_no_values(kind: str | int) -> None:
    with pytest.raises(TypeError, match="only t"):
        Column("c", column_type(23)).load(kind, b"1")
    with pytest.raises(TypeError, match="only t"):
        column_type(23).load(kind, b"1")


def test_null_with_the_text_beside_it() -> None:
    column = Column("c", column_type(23), "public.t")
    assert column.load_or_text("t", b"1") == (1, None)
    assert column.load_or_text("t", b"x1") == (None, "x1")
    assert column.load_or_text("b", b"\0") == (None, "\\x00")
    assert column.load_or_text("t", b"\xff") == (None, "\\xff")


def test_bytes_that_are_not_in_the_encoding() -> None:
    with pytest.raises(ColumnValueError, match="not valid in the encoding"):
        column_type(25).load("t", b"\xe4")
    assert column_type(25).load("t", b"\xe4", "latin-1") == "ä"
    assert Column("c", column_type(25), encoding="latin-1").load("t", b"\xe4") == "ä"
    with pytest.raises(ColumnValueError, match="not valid in the encoding"):
        column_type(1009).load("b", struct.pack("!iiIiii", 1, 0, 25, 1, 1, 1) + b"\xe4")
