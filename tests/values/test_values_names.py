"""Types without a fixed OID (domains, enums, composite types, extensions), and modifiers in the names of types."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from decimal import Decimal

import pytest

from logicalrep.values import CatalogType, ColumnValueError, TypeCatalog, column_type, parse_record


@dataclass
class Announced:
    namespace: str
    name: str


TYPES = {
    17622: Announced("public", "mood"),
    17621: Announced("public", "_mood"),
    17630: Announced("", "int4"),  # a domain
    17631: Announced("pg_catalog", "numeric"),  # a domain
    17638: Announced("", "_int4"),  # a domain over integer[]
    17642: Announced("public", "_pair"),
    17643: Announced("public", "pair"),
    17646: Announced("public", "nest"),
    17650: Announced("public", "f8range"),
    17664: Announced("Odd schema.", 'Odd type "x"'),
    16525: Announced("extensions", "hstore"),
    16530: Announced("extensions", "_hstore"),
    16653: Announced("public", "citext"),
    17430: Announced("public", "ltree"),
    17431: Announced("public", "_ltree"),
    12025: Announced("", "pg_rules"),
    12024: Announced("", "_pg_rules"),
    17632: Announced("public", "_positive"),  # an array of a domain
}
MOOD, PAIR = (CatalogType("public", name, is_base=False) for name in ("mood", "pair"))
CATALOG = TypeCatalog(
    {
        17621: CatalogType("public", "_mood", element=MOOD),
        17632: CatalogType("public", "_positive", element=CatalogType("public", "positive", is_base=False)),
        17642: CatalogType("public", "_pair", element=PAIR),
    }
)


@pytest.mark.parametrize(
    ("oid", "modifier", "name"),
    [
        (1186, (4 | 2) << 16 | 0xFFFF, "interval year to month"),
        (1186, (8 | 1024 | 2048 | 4096) << 16 | 3, "interval day to second(3)"),
        (1186, 4096 << 16 | 1, "interval second(1)"),
        (1186, 0x7FFF << 16 | 2, "interval(2)"),
        (1184, 0, "timestamp(0) with time zone"),
        (1231, (10 << 16 | 2) + 4, "numeric(10,2)[]"),
        (1014, 7, "character(3)[]"),
        (1042, -1, "bpchar"),
        (1561, -1, '"bit"[]'),
        (17622, -1, "public.mood"),
        (17621, -1, "public._mood"),
        (17630, -1, "integer"),
        (17638, -1, "integer[]"),
        (17664, -1, '"Odd schema."."Odd type ""x"""'),
        (16525, -1, "extensions.hstore"),
        (16530, -1, "extensions.hstore[]"),
        (12025, -1, "pg_rules"),
        (99999, -1, "type 99999"),
    ],
)
def test_names(oid: int, modifier: int, name: str) -> None:
    assert column_type(oid, modifier, TYPES).name == name


@pytest.mark.parametrize("row_oid", [1700, 1043, 1042, 1560, 1562, 1083, 1186])
@pytest.mark.parametrize("modifier", [-(2**31), -5, -1, 0, 1, 3, 4, 5, 2**31 - 1])
def test_no_modifier_is_an_error(row_oid: int, modifier: int) -> None:
    column = column_type(row_oid, modifier)
    assert column.spark_type
    assert column.name


def test_a_domain_is_its_base_type() -> None:
    assert column_type(17630, -1, TYPES).load("t", b"7") == 7
    assert column_type(17630, -1, TYPES).load("b", b"\0\0\0\7") == 7
    assert column_type(17631, -1, TYPES).load("t", b"1.50") == Decimal("1.50")
    assert column_type(17638, -1, TYPES).load("t", b"{1,2}") == [1, 2]


def test_an_enum_is_its_label() -> None:
    mood = column_type(17622, -1, TYPES)
    assert mood.load("t", "happy 🙂".encode()) == mood.load("b", "happy 🙂".encode()) == "happy 🙂"
    assert mood.spark_type == "string"
    moods = column_type(17621, -1, TYPES, catalog=CATALOG)
    binary = bytes.fromhex("0000000100000001000044d6000000030000000100000003736164ffffffff0000000a686170707920f09f9982")
    assert moods.load("t", '{sad,NULL,"happy 🙂"}'.encode()) == moods.load("b", binary) == ["sad", None, "happy 🙂"]
    assert (moods.name, moods.spark_type) == ("public.mood[]", "array<string>")


def test_names_in_another_encoding() -> None:
    assert column_type(17622, -1, TYPES).load("t", b"h\xe4ppy", "latin-1") == "häppy"
    assert column_type(17622, -1, TYPES).load("b", b"h\xe4ppy", "latin-1") == "häppy"
    # In Shift JIS the second byte of 表 is a backslash.
    assert column_type(1009).load("t", '{"表",表}'.encode("shift_jis"), "shift_jis") == ["表", "表"]


def test_a_composite_value_is_its_text() -> None:
    pair = column_type(17643, -1, TYPES)
    binary = bytes.fromhex("0000000200000017000000040000000100000019000000056120226222")
    assert pair.load("t", b'(1,"a ""b""")') == pair.load("b", binary) == '(1,"a ""b""")'
    nest = column_type(17646, -1, TYPES)
    binary = bytes.fromhex(
        "00000003000044d600000003736164000044eb0000001900000002000000170000000400000001000000190000000178"
        "000044e600000024000000010000000000000017000000020000000100000004000000010000000400000002"
    )
    assert nest.load("b", binary) == '(sad,"(1,x)","{1,2}")'
    pairs = column_type(17642, -1, TYPES, catalog=CATALOG)
    binary = bytes.fromhex(
        "0000000100000001000044eb00000002000000010000001900000002000000170000000400000001000000190000000161ffffffff"
    )
    assert pairs.load("t", b'{"(1,a)",NULL}') == pairs.load("b", binary) == ["(1,a)", None]


def record(*fields: tuple[int, bytes | None]) -> bytes:
    parts = [struct.pack("!i", len(fields))]
    for oid, value in fields:
        parts.append(struct.pack("!Ii", oid, -1 if value is None else len(value)) + (value or b""))
    return b"".join(parts)


def test_fields_of_composite_values_are_written_as_the_server_does() -> None:
    pair = column_type(17643, -1, TYPES)
    binary = record(
        (25, b""), (25, None), (25, b"a,b"), (25, b"\\"), (16, b"\1"), (701, struct.pack("!d", 0.1)), (17, b"\xff"),
        (1114, bytes(8)), (25, "\N{NO-BREAK SPACE}".encode()), (17622, b"sad"),
    )  # fmt: skip
    text = pair.load("b", binary)
    assert text == '("",,"a,b","\\\\",t,0.1,"\\\\xff","2000-01-01 00:00:00",\N{NO-BREAK SPACE},sad)'
    assert parse_record(text) == (
        "", None, "a,b", "\\", "t", "0.1", "\\xff", "2000-01-01 00:00:00", "\N{NO-BREAK SPACE}", "sad",
    )  # fmt: skip


def test_a_composite_value_with_an_unknown_type_is_refused_in_binary_format() -> None:
    with pytest.raises(ColumnValueError, match="no Type message announced the type with OID 55555"):
        column_type(17643, -1, TYPES).load("b", record((55555, b"abc")))


def test_a_range_known_by_name_is_refused_in_binary_format() -> None:
    f8range = column_type(17650, -1, TYPES)
    assert f8range.load("t", b"[1.5,2.5)") == "[1.5,2.5)"
    with pytest.raises(ColumnValueError, match="the binary format of this type is not known"):
        f8range.load("b", bytes.fromhex("02000000083ff8000000000000000000084004000000000000"))


def test_elements_of_a_domain_are_text() -> None:
    positives = column_type(17632, -1, TYPES, catalog=CATALOG)
    one_array = struct.pack("!iiIiiii", 1, 0, 17630, 1, 1, 4, 1)
    assert positives.load("t", b"{1}") == positives.load("b", one_array) == ["1"]
    with pytest.raises(ColumnValueError, match="no Type message announced"):
        # These four bytes are an integer or a label.
        positives.load("b", struct.pack("!iiIiii4s", 1, 0, 55555, 1, 1, 4, b"ABCD"))


def test_what_is_known_by_a_name_that_begins_with_a_line_stays_text() -> None:
    """The name may be the name of an array, with any delimiter, or of an enum."""
    for oid, text in ((17621, "{sad,NULL}"), (17621, "sad"), (17642, '{"(1,a)",NULL}'), (17632, "{A:B}")):
        column = column_type(oid, -1, TYPES)
        assert (column.load("t", text.encode()), column.to_text(text), column.spark_type) == (text, text, "string")
    mood = struct.pack("!iiIii", 1, 1, 17622, 2, 1) + struct.pack("!i5si", 5, b"sad,1", -1)
    assert column_type(17621, -1, TYPES).load("b", mood) == '{"sad,1",NULL}'
    assert column_type(17621, -1, TYPES).load("b", struct.pack("!iiI", 0, 0, 17622)) == "{}"
    assert column_type(17621, -1, TYPES).load("b", b"sad") == "sad"
    assert column_type(17642, -1, TYPES).load("b", record((25, b"x"), (23, b"\0\0\0\1"))) == "(x,1)"


def test_binary_arrays_of_domains_have_the_base_types_delimiter() -> None:
    types = {17700: Announced("", "box"), 17701: Announced("public", "_shape")}
    array = struct.pack("!iiIiii4d", 1, 0, 17700, 1, 1, 32, 1, 1, 0, 0)
    assert column_type(17701, -1, types).load("b", array) == "{(1,1),(0,0)}"
    two = struct.pack("!iiIii", 1, 0, 17700, 2, 1) + struct.pack("!i4d", 32, 1, 1, 0, 0) * 2
    assert column_type(17701, -1, types).load("b", two) == "{(1,1),(0,0);(1,1),(0,0)}"


def test_the_catalog_tells_arrays_and_delimiters() -> None:
    shape = CatalogType("public", "shape", is_base=False, delimiter=";")
    mark = CatalogType("public", "mark", delimiter=":")
    catalog = TypeCatalog(
        {
            1: CatalogType("public", "_shape", delimiter=";", element=shape),
            2: CatalogType("public", "__mark", delimiter=":", element=mark),
            3: CatalogType("public", "_mood", is_base=False),
            4: CatalogType("public", "hstore", is_base=False),
            5: CatalogType("ext", "hstore"),
            6: CatalogType("public", "_hstore", element=CatalogType("public", "hstore", is_base=False)),
            7: CatalogType("ext", "_hstore", element=CatalogType("ext", "hstore")),
        }
    )
    values = {
        1: ("public.shape[]", "{(1,1),(0,0);(2,2),(1,1)}", ["(1,1),(0,0)", "(2,2),(1,1)"]),
        2: ("public.mark[]", "{A:B,C}", ["A", "B,C"]),
        3: ("public._mood", "{a,b}", "{a,b}"),
        4: ("public.hstore", "sad", "sad"),
        5: ("ext.hstore", '"a"=>"1"', {"a": "1"}),
        6: ("public.hstore[]", "{sad}", ["sad"]),
        7: ("ext.hstore[]", '{"\\"a\\"=>\\"1\\""}', [{"a": "1"}]),
    }
    for oid, (name, text, value) in values.items():
        column = column_type(oid, -1, catalog=catalog)
        assert (column.name, column.load("t", text.encode())) == (name, value)
        assert column.to_text(value) == text
    # A recreated type has another OID and the same name.
    second_type = column_type(99, -1, {99: Announced("public", "__mark")}, catalog=catalog)
    assert second_type.load("t", b"{A:B}") == ["A", "B"]
    renamed = column_type(2, -1, {2: Announced("public", "_old_name")}, catalog=catalog)
    assert renamed.load("t", b"{A:B}") == ["A", "B"]


def test_types_announced_later_are_seen() -> None:
    types: dict[int, Announced] = {17643: TYPES[17643]}
    pair = column_type(17643, -1, types)
    with pytest.raises(ColumnValueError):
        pair.load("b", record((17622, b"sad")))
    types[17622] = TYPES[17622]
    assert pair.load("b", record((17622, b"sad"))) == "(sad)"


def test_hstore_is_a_dict() -> None:
    hstore = column_type(16525, -1, TYPES)
    binary = bytes.fromhex("000000020000000161000000013100000003622063ffffffff")
    assert hstore.load("t", b'"a"=>"1", "b c"=>NULL') == hstore.load("b", binary) == {"a": "1", "b c": None}
    assert hstore.load("t", b"") == hstore.load("b", bytes(4)) == {}
    odd = {'q"': "back\\slash", "": "NULL", "=>": ", ", "日本": ""}
    assert hstore.load("t", hstore.to_text(odd).encode()) == odd
    assert hstore.spark_type == "map<string,string>"
    hstores = column_type(16530, -1, TYPES)
    assert hstores.load("t", b'{"\\"a\\"=>\\"1\\"",NULL}') == [{"a": "1"}, None]
    assert hstores.load("b", struct.pack("!iiIiii", 1, 0, 16525, 1, 1, 4) + bytes(4)) == [{}]


def test_other_extensions() -> None:
    assert column_type(16653, -1, TYPES).load("b", b"CaSe" * 20) == "CaSe" * 20
    ltree = column_type(17430, -1, TYPES)
    assert ltree.load("t", b"Top.Science") == ltree.load("b", b"\1Top.Science") == "Top.Science"
    ltrees = column_type(17431, -1, TYPES)
    assert ltrees.load("b", struct.pack("!iiIiii2s", 1, 0, 17430, 1, 1, 2, b"\1T")) == ["T"]


def test_a_type_that_was_not_announced_stays_text() -> None:
    unknown = column_type(99999)
    assert unknown.load("t", b"anything") == "anything"
    with pytest.raises(ColumnValueError, match="no Type message announced the type with OID 99999"):
        unknown.load("b", b"anything")


def test_money_in_binary_format_needs_lc_monetary() -> None:
    value = struct.pack("!q", -123456)
    with pytest.raises(ColumnValueError, match="lc_monetary"):
        column_type(790).load("b", value)
    assert column_type(790, lc_monetary="C").load("b", value) == "-$1,234.56"
    assert column_type(790).load("t", "-1.234,56 €".encode()) == "-1.234,56 €"


def test_names_of_objects() -> None:
    regclass = column_type(2205)
    assert regclass.load("t", b"pg_class") == "pg_class"
    assert regclass.load("b", bytes.fromhex("000004eb")) == "1259"


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("()", (None,)),
        ("(,)", (None, None)),
        ('("")', ("",)),
        ('(1,"a ""b""")', ("1", 'a "b"')),
        ('(sad,"(1,x)","{1,2}")', ("sad", "(1,x)", "{1,2}")),
        ('("(1,""a b"")",)', ('(1,"a b")', None)),
        ('("a\\\\b")', ("a\\b",)),
    ],
)
def test_parse_record(text: str, fields: tuple[str | None, ...]) -> None:
    assert parse_record(text) == fields


@pytest.mark.parametrize("text", ["", "(", ")", "1,2", '("a', '("a"b)', "(a b)", "((1))", '(a"b")'])
def test_parse_record_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r"not the text of a composite value|no comma"):
        parse_record(text)
