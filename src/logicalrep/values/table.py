"""The table of types: the one place that decides each PostgreSQL type's form in Python, Arrow and Spark."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Literal

from logicalrep.values import modifiers, targets
from logicalrep.values.column_type import ColumnType
from logicalrep.values.native_loaders import NativeLoader
from logicalrep.values.targets import Target
from logicalrep.values.types import geometry, hstore, intervals, network, numeric, scalars, temporal, textsearch
from logicalrep.values.types.arrays import ArrayText, array_binary
from logicalrep.values.types.binary import FromBinary, FromText, ToText, fixed
from logicalrep.values.types.ranges import RangeText, multirange_binary, range_binary

Modify = Callable[[ColumnType, int], ColumnType]


@dataclass(frozen=True)
class Row:
    """One type of pg_catalog or of an extension. The defaults describe a type whose Python values are its text.

    Attributes:
        oid, array_oid: 0 for an extension's type, which is known by its name.
        name: the name that PostgreSQL displays, if it differs from `typname`.
        python: the Python types of loaded values, in words.
        to_text: returns PostgreSQL's text of a loaded value; None if loaded values are their text.
        arrow: the type in Arrow and, if Spark has it, in Spark; None for text.
        native: the native loader that reads the text format into `arrow`. NONE: `from_text` reads each value.
        modify: makes the type with a modifier; None if modifiers change nothing.
        least: the smallest valid modifier.
        text_depends_on: why texts change without a change of the row: other objects got other names, or the server's
            `lc_monetary` changed.
        examples: modifiers that change the targets, shown in the documentation.
    """

    typname: str
    _: KW_ONLY
    oid: int = 0
    array_oid: int = 0
    name: str = ""
    python: str = "`str`"
    from_text: FromText = scalars.text_text
    from_binary: FromBinary = scalars.text_binary
    to_text: ToText | None = None
    arrow: Target | None = None
    native: NativeLoader = NativeLoader.NONE
    modify: Modify | None = None
    least: int = 0
    delimiter: str = ","
    text_depends_on: Literal["names", "lc_monetary"] | None = None
    extension: str = ""
    examples: tuple[int, ...] = ()
    note: str = ""

    @cached_property
    def type(self) -> ColumnType:
        text = targets.STRING if self.to_text is None else targets.text(self.to_text)
        arrow = replace(self.arrow or text, native=self.native)
        return ColumnType(
            name=self.name or self.typname,
            python=self.python,
            from_text=self.from_text,
            from_binary=self.from_binary,
            to_text=self.to_text or scalars.text_text,
            arrow=arrow,
            spark=arrow if arrow.spark else text,
        )

    def modified(self, modifier: int) -> ColumnType:
        # As on the server, an invalid modifier means none.
        return self.type if self.modify is None or modifier < self.least else self.modify(self.type, modifier)


def array_of(element: ColumnType, loader: Callable[[int], FromBinary], delimiter: str = ",") -> ColumnType:
    """Return the type of arrays; `loader` returns the binary loader for the OID of the elements' type."""
    text = ArrayText(element.from_text, element.to_text, delimiter)
    return ColumnType(
        name=f"{element.name}[]",
        python=f"list of {element.python}",
        from_text=text.load,
        from_binary=array_binary(loader),
        to_text=text.format,
        arrow=targets.array(element.arrow),
        spark=targets.array(element.spark),
    )


def _integer(typname: str, *, layout: str, **fields: Any) -> Row:
    bits = 8 * struct.calcsize(f"!{layout}")
    lowest, highest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if layout.islower() else (0, 2**bits - 1)
    text = scalars.integer_text(lowest, highest)
    return Row(typname, python="`int`", from_text=text, from_binary=fixed(layout), to_text=str, **fields)


def _ranges(subtype: Row, range_: tuple[str, int, int], multirange: tuple[str, int, int]) -> tuple[Row, Row]:
    """Return the rows of a range and a multirange, each given as its name, its OID and its arrays' OID."""
    element = subtype.type
    text = RangeText(element.from_text, element.to_text)
    return (
        Row(
            range_[0],
            oid=range_[1],
            array_oid=range_[2],
            python=f"`Range` of {element.python}",
            from_text=text.load,
            from_binary=range_binary(element.from_binary),
            to_text=text.format,
        ),
        Row(
            multirange[0],
            oid=multirange[1],
            array_oid=multirange[2],
            python=f"tuple of `Range` of {element.python}",
            from_text=text.load_multirange,
            from_binary=multirange_binary(element.from_binary),
            to_text=text.format_multirange,
        ),
    )


# fmt: off
_INT4 = _integer(
    "int4", layout="i", oid=23, array_oid=1007, name="integer", arrow=targets.INT32, native=NativeLoader.INT32,
)
_INT8 = _integer(
    "int8", layout="q", oid=20, array_oid=1016, name="bigint", arrow=targets.INT64, native=NativeLoader.INT64,
)

_NUMERIC = Row(
    "numeric", oid=1700, array_oid=1231, python="`Decimal`", from_text=numeric.numeric_text,
    from_binary=numeric.numeric_binary, to_text=numeric.format_numeric, arrow=targets.NUMBER_TEXT,
    native=NativeLoader.NUMBER,
    modify=modifiers.with_precision, least=4,
    examples=tuple(
        (precision << 16 | scale & 0x7FF) + 4 for precision, scale in ((10, 2), (5, -2), (3, 5), (50, 10), (100, 0))
    ),
    note="Exact, with the digits after the point that the server shows; also NaN and infinities. "
    "`numeric(p,s)` is a decimal of p digits, or more if the scale is negative or greater than p; it is "
    "text if it has more than 38 (Spark) or 76 digits (Arrow). A decimal cannot hold NaN.",
)
_DATE = Row(
    "date", oid=1082, array_oid=1182, python="`date` or `ExtendedDate`", from_text=temporal.date_text,
    from_binary=fixed("i", temporal.make_date), to_text=temporal.format_date, arrow=targets.DATE,
    native=NativeLoader.DATE,
    note="Arrow and Spark cannot hold infinity; all other dates are exact.",
)
_TIMESTAMP = Row(
    "timestamp", oid=1114, array_oid=1115, name="timestamp without time zone",
    python="`datetime` or `ExtendedTimestamp`", from_text=temporal.timestamp_text,
    from_binary=fixed("q", temporal.make_timestamp), to_text=temporal.format_timestamp, arrow=targets.TIMESTAMP,
    native=NativeLoader.TIMESTAMP, modify=modifiers.with_seconds,
    note="Arrow and Spark cannot hold infinity and timestamps after 294247-01-10 04:00:54.775807.",
)
_TIMESTAMPTZ = Row(
    "timestamptz", oid=1184, array_oid=1185, name="timestamp with time zone",
    python="`datetime` in UTC or `ExtendedTimestamp`", from_text=temporal.timestamptz_text,
    from_binary=fixed("q", temporal.make_timestamptz), to_text=temporal.format_timestamp, arrow=targets.TIMESTAMP_UTC,
    native=NativeLoader.TIMESTAMPTZ, modify=modifiers.with_seconds,
    note="The limits of timestamp apply. The value is an instant: the server does not store the zone.",
)

_OF_NAMES = [
    Row(
        typname, oid=oid, array_oid=array_oid, from_binary=fixed("I", str), native=NativeLoader.STRING,
        text_depends_on="names",
        note="A name in text format; in binary format the server sends the OID, and the value has its digits. "
        "`replicate` refuses the type.",
    )
    for typname, oid, array_oid in (
        ("regproc", 24, 1008), ("regprocedure", 2202, 2207), ("regoper", 2203, 2208),
        ("regoperator", 2204, 2209), ("regclass", 2205, 2210), ("regtype", 2206, 2211),
        ("regconfig", 3734, 3735), ("regdictionary", 3769, 3770), ("regnamespace", 4089, 4090),
        ("regrole", 4096, 4097), ("regcollation", 4191, 4192),
    )
]

TABLE: tuple[Row, ...] = (
    Row(
        "bool", oid=16, array_oid=1000, name="boolean", python="`bool`", from_text=scalars.boolean_text,
        from_binary=scalars.boolean_binary, to_text=scalars.format_boolean, arrow=targets.BOOLEAN,
        native=NativeLoader.BOOLEAN,
    ),
    _integer(
        "int2", layout="h", oid=21, array_oid=1005, name="smallint", arrow=targets.INT16, native=NativeLoader.INT16,
    ),
    _INT4,
    _INT8,
    Row(
        "float4", oid=700, array_oid=1021, name="real", python="`float`", from_text=scalars.float4_text,
        from_binary=fixed("f"), to_text=scalars.format_float4, arrow=targets.FLOAT, native=NativeLoader.FLOAT32,
        note="Also NaN, infinities and -0. Python gets the exact single-precision number: 1.1 is "
        "1.10000002384185791015625.",
    ),
    Row(
        "float8", oid=701, array_oid=1022, name="double precision", python="`float`", from_text=scalars.float8_text,
        from_binary=fixed("d"), to_text=scalars.format_float8, arrow=targets.DOUBLE, native=NativeLoader.FLOAT64,
        note="Also NaN, infinities and -0. Text format is exact if the server wrote it with extra_float_digits of 1 or "
        "more.",
    ),
    _NUMERIC,
    Row(
        "money", oid=790, array_oid=791, from_binary=scalars.money_binary, native=NativeLoader.STRING,
        text_depends_on="lc_monetary",
        note="The server's text, which depends on its lc_monetary. The binary format counts units whose size the "
        "server does not send: it is an error unless `lc_monetary` is C.",
    ),
    Row("text", oid=25, array_oid=1009, native=NativeLoader.STRING),
    Row(
        "varchar", oid=1043, array_oid=1015, name="character varying", native=NativeLoader.STRING,
        modify=modifiers.with_length, least=5,
    ),
    Row(
        "bpchar", oid=1042, array_oid=1014, native=NativeLoader.STRING, modify=modifiers.with_length, least=5,
        note="`char(n)`, with its padding.",
    ),
    Row(
        "char", oid=18, array_oid=1002, name='"char"', from_text=scalars.char_text, from_binary=scalars.char_binary,
        note="One byte: empty for the zero byte, `\\ooo` (octal) from 0x80 on.",
    ),
    Row("name", oid=19, array_oid=1003, native=NativeLoader.STRING),
    Row(
        "bytea", oid=17, array_oid=1001, python="`bytes`", from_text=scalars.bytea_text,
        from_binary=scalars.bytea_binary, to_text=scalars.format_bytea, arrow=targets.BINARY, native=NativeLoader.BYTES,
        note="From both forms of bytea_output.",
    ),
    _DATE,
    Row(
        "time", oid=1083, array_oid=1183, name="time without time zone", python="`time` or `ExtendedTime`",
        from_text=temporal.time_text, from_binary=fixed("q", temporal.make_time), to_text=temporal.format_time,
        arrow=targets.TIME, modify=modifiers.with_seconds,
        note="24:00:00 is an `ExtendedTime`; Arrow cannot hold it. Spark 4.1 cannot write its time type to files.",
    ),
    Row(
        "timetz", oid=1266, array_oid=1270, name="time with time zone",
        python="`time` with an offset or `ExtendedTime`", from_text=temporal.timetz_text,
        from_binary=fixed("qi", temporal.make_timetz), to_text=temporal.format_time, modify=modifiers.with_seconds,
        note="Neither Arrow nor Spark has such a type.",
    ),
    _TIMESTAMP,
    _TIMESTAMPTZ,
    Row(
        "interval", oid=1186, array_oid=1187, python="`Interval`", from_text=intervals.interval_text,
        from_binary=fixed("qii", intervals.make_interval), to_text=str, arrow=targets.INTERVAL,
        modify=modifiers.with_fields,
        note="Separate months, days and microseconds. Arrow counts nanoseconds, and cannot hold infinity or times of "
        "more than 292 years. Spark has no type that holds all three parts.",
    ),
    Row(
        "uuid", oid=2950, array_oid=2951, python="`UUID`", from_text=scalars.uuid_text, from_binary=scalars.uuid_binary,
        to_text=str, native=NativeLoader.UUID,
    ),
    Row(
        "json", oid=114, array_oid=199, native=NativeLoader.STRING,
        note="The unchanged text, with its blanks, order, repeated keys and digits.",
    ),
    Row(
        "jsonb", oid=3802, array_oid=3807, from_binary=scalars.versioned_text_binary, native=NativeLoader.STRING,
        note="The server's text; `json.loads(value, parse_float=Decimal)` keeps its digits.",
    ),
    Row("jsonpath", oid=4072, array_oid=4073, from_binary=scalars.versioned_text_binary, native=NativeLoader.STRING),
    Row("xml", oid=142, array_oid=143, native=NativeLoader.STRING),
    Row(
        "inet", oid=869, array_oid=1041, python="`IPv4Address`, `IPv6Address`, `IPv4Interface` or `IPv6Interface`",
        from_text=network.inet_text, from_binary=network.inet_binary, to_text=network.format_inet,
        note="An interface if it has a mask.",
    ),
    Row(
        "cidr", oid=650, array_oid=651, python="`IPv4Network` or `IPv6Network`", from_text=network.cidr_text,
        from_binary=network.cidr_binary, to_text=network.format_cidr,
    ),
    Row("macaddr", oid=829, array_oid=1040, from_text=network.mac_text(6), from_binary=network.mac_binary(6)),
    Row("macaddr8", oid=774, array_oid=775, from_text=network.mac_text(8), from_binary=network.mac_binary(8)),
    Row(
        "bit", oid=1560, array_oid=1561, name='"bit"', from_text=scalars.bits_text, from_binary=scalars.bits_binary,
        modify=modifiers.with_bits, least=1, note="The digits 0 and 1.",
    ),
    Row(
        "varbit", oid=1562, array_oid=1563, name="bit varying", from_text=scalars.bits_text,
        from_binary=scalars.bits_binary, modify=modifiers.with_most_bits, least=1, note="The digits 0 and 1.",
    ),
    Row(
        "point", oid=600, array_oid=1017, python="`Point`", from_text=geometry.point_text,
        from_binary=geometry.point_binary, to_text=geometry.format_point, arrow=targets.POINT,
    ),
    Row(
        "line", oid=628, array_oid=629, python="`Line`", from_text=geometry.line_text, from_binary=geometry.line_binary,
        to_text=geometry.format_line, arrow=targets.LINE,
    ),
    Row(
        "lseg", oid=601, array_oid=1018, python="`LineSegment`", from_text=geometry.segment_text,
        from_binary=geometry.segment_binary, to_text=geometry.format_segment, arrow=targets.LINE_SEGMENT,
    ),
    Row(
        "box", oid=603, array_oid=1020, python="`Box`", from_text=geometry.box_text, from_binary=geometry.box_binary,
        to_text=geometry.format_box, arrow=targets.BOX, delimiter=";",
    ),
    Row(
        "path", oid=602, array_oid=1019, python="`Path`", from_text=geometry.path_text,
        from_binary=geometry.path_binary, to_text=geometry.format_path, arrow=targets.PATH,
    ),
    Row(
        "polygon", oid=604, array_oid=1027, python="`Polygon`", from_text=geometry.polygon_text,
        from_binary=geometry.polygon_binary, to_text=geometry.format_polygon, arrow=targets.POLYGON,
    ),
    Row(
        "circle", oid=718, array_oid=719, python="`Circle`", from_text=geometry.circle_text,
        from_binary=geometry.circle_binary, to_text=geometry.format_circle, arrow=targets.CIRCLE,
    ),
    Row("tsvector", oid=3614, array_oid=3643, from_binary=textsearch.tsvector_binary, native=NativeLoader.STRING),
    Row("tsquery", oid=3615, array_oid=3645, from_binary=textsearch.tsquery_binary, native=NativeLoader.STRING),
    *_ranges(_INT4, ("int4range", 3904, 3905), ("int4multirange", 4451, 6150)),
    *_ranges(_INT8, ("int8range", 3926, 3927), ("int8multirange", 4536, 6157)),
    *_ranges(_NUMERIC, ("numrange", 3906, 3907), ("nummultirange", 4532, 6151)),
    *_ranges(_TIMESTAMP, ("tsrange", 3908, 3909), ("tsmultirange", 4533, 6152)),
    *_ranges(_TIMESTAMPTZ, ("tstzrange", 3910, 3911), ("tstzmultirange", 4534, 6153)),
    *_ranges(_DATE, ("daterange", 3912, 3913), ("datemultirange", 4535, 6155)),
    _integer("oid", layout="I", oid=26, array_oid=1028, arrow=targets.INT64, native=NativeLoader.OID, note="Unsigned."),
    _integer("xid", layout="I", oid=28, array_oid=1011, arrow=targets.INT64, native=NativeLoader.OID, note="Unsigned."),
    _integer("cid", layout="I", oid=29, array_oid=1012, arrow=targets.INT64, native=NativeLoader.OID, note="Unsigned."),
    _integer("xid8", layout="Q", oid=5069, array_oid=271, arrow=targets.UINT64, note="Unsigned, 64 bits."),
    Row("tid", oid=27, array_oid=1010, from_text=scalars.tid_text, from_binary=fixed("IH", scalars.make_tid)),
    Row("pg_lsn", oid=3220, array_oid=3221, from_text=scalars.lsn_text, from_binary=fixed("II", scalars.make_lsn)),
    Row(
        "txid_snapshot", oid=2970, array_oid=2949, from_text=scalars.snapshot_text,
        from_binary=scalars.snapshot_binary,
    ),
    Row("pg_snapshot", oid=5038, array_oid=5039, from_text=scalars.snapshot_text, from_binary=scalars.snapshot_binary),
    Row(
        "int2vector", oid=22, array_oid=1006, python="tuple of `int`", from_text=scalars.int2vector_text,
        from_binary=scalars.vector_binary(21, "h"), to_text=scalars.format_vector, arrow=targets.vector(targets.INT16),
    ),
    Row(
        "oidvector", oid=30, array_oid=1013, python="tuple of `int`", from_text=scalars.oidvector_text,
        from_binary=scalars.vector_binary(26, "I"), to_text=scalars.format_vector, arrow=targets.vector(targets.INT64),
    ),
    Row("refcursor", oid=1790, array_oid=2201, native=NativeLoader.STRING),
    Row(
        "aclitem", oid=1033, array_oid=1034, from_binary=scalars.no_binary, native=NativeLoader.STRING,
        text_depends_on="names", note="The server has no binary format for it. `replicate` refuses it.",
    ),
    *_OF_NAMES,
)

# Types of extensions, known by their names: their OIDs differ from database to database.
EXTENSIONS: tuple[Row, ...] = (
    Row(
        "hstore", python="`dict` of `str` to `str` or None", from_text=hstore.hstore_text,
        from_binary=hstore.hstore_binary, to_text=hstore.format_hstore, arrow=targets.STRING_MAP, extension="hstore",
    ),
    Row("citext", native=NativeLoader.STRING, extension="citext"),
    Row("ltree", from_binary=scalars.versioned_text_binary, native=NativeLoader.STRING, extension="ltree"),
    Row("lquery", from_binary=scalars.versioned_text_binary, native=NativeLoader.STRING, extension="ltree"),
    Row("ltxtquery", from_binary=scalars.versioned_text_binary, native=NativeLoader.STRING, extension="ltree"),
)
# fmt: on
