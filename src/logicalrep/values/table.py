"""The table of types: the one place that decides each PostgreSQL type's form in Python, Arrow and Spark.

The loaders, the Arrow and Spark types and `docs/reference/types.md` all come from here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from logicalrep.values import modifiers, targets
from logicalrep.values.column_type import ColumnType
from logicalrep.values.targets import Target
from logicalrep.values.types import geometry, hstore, intervals, network, numeric, scalars, temporal, textsearch
from logicalrep.values.types.arrays import ArrayText, array_binary
from logicalrep.values.types.binary import FromBinary, FromText, ToText, fixed
from logicalrep.values.types.ranges import RangeText, multirange_binary, range_binary

Modify = Callable[[ColumnType, int], ColumnType]


@dataclass(frozen=True, slots=True)
class Row:
    """One type of pg_catalog.

    Attributes:
        oid, array_oid: the OIDs of the type and of arrays of it (0 for none).
        typname: its name in pg_type.
        type: its ColumnType without a modifier.
        modify: makes the type with a modifier; None if modifiers change nothing.
        least: the smallest valid modifier.
        delimiter: the delimiter between elements of its arrays.
        note: a remark for the documentation.
        examples: modifiers that change the targets, shown in the documentation.
    """

    oid: int
    array_oid: int
    typname: str
    type: ColumnType
    modify: Modify | None = None
    least: int = 0
    delimiter: str = ","
    note: str = ""
    examples: tuple[int, ...] = ()

    def modified(self, modifier: int) -> ColumnType:
        # As on the server, an invalid modifier means none.
        return self.type if self.modify is None or modifier < self.least else self.modify(self.type, modifier)


def array_of(
    element: ColumnType, loader: Callable[[int], FromBinary], delimiter: str = ",", name: str = ""
) -> ColumnType:
    """Return the type of arrays; `loader` returns the binary loader for the OID of the elements' type."""
    text = ArrayText(element.from_text, element.to_text, delimiter)
    arrow = targets.array(element.arrow)
    spark = targets.array(element.spark)
    return ColumnType(
        name=name or f"{element.name}[]",
        python=f"list of {element.python}",
        from_text=text.load,
        from_binary=array_binary(loader),
        to_text=text.format,
        arrow=arrow,
        spark=spark,
    )


def _row(
    oid: int,
    array_oid: int,
    typname: str,
    name: str,
    python: str,
    text: FromText,
    binary: FromBinary,
    to_text: ToText,
    arrow: Target | None = None,
    *,
    modify: Modify | None = None,
    least: int = 0,
    delimiter: str = ",",
    note: str = "",
    examples: tuple[int, ...] = (),
) -> Row:
    """Return a row. Without `arrow` the type stays text; Spark's type is Arrow's if there is one, else text."""
    as_text = targets.text(to_text)
    arrow = arrow or as_text
    column = ColumnType(name or typname, python, text, binary, to_text, arrow, arrow if arrow.spark else as_text)
    return Row(oid, array_oid, typname, column, modify, least, delimiter, note, examples)


def _string(
    oid: int,
    array_oid: int,
    typname: str,
    name: str = "",
    text: FromText = scalars.text_text,
    binary: FromBinary = scalars.text_binary,
    *,
    modify: Modify | None = None,
    least: int = 0,
    note: str = "",
) -> Row:
    """Return the row of a type whose values are its text, in Python too."""
    column = ColumnType(name or typname, "`str`", text, binary, scalars.text_text, targets.STRING, targets.STRING)
    return Row(oid, array_oid, typname, column, modify, least, note=note)


def _integer(
    oid: int,
    array_oid: int,
    typname: str,
    name: str,
    lowest: int,
    highest: int,
    layout: str,
    arrow: Target,
    note: str = "",
) -> Row:
    return _row(
        oid,
        array_oid,
        typname,
        name,
        "`int`",
        scalars.integer_text(lowest, highest),
        fixed(layout),
        str,
        arrow,
        note=note,
    )


def _registered(oid: int, array_oid: int, typname: str) -> Row:
    """Return the row of a type that names a catalog object: a name in the text format, an OID in the binary format."""
    return _string(
        oid,
        array_oid,
        typname,
        binary=fixed("I", str),
        note="A name in text format; in binary format the server sends the OID, which is kept as digits. `replicate` "
        "refuses it.",
    )


def _range(
    subtype: Row,
    typname: str,
    oid: int,
    array_oid: int,
    multirange: str,
    multirange_oid: int,
    multirange_array_oid: int,
) -> tuple[Row, Row]:
    element = subtype.type
    text = RangeText(element.from_text, element.to_text)
    return (
        _row(
            oid,
            array_oid,
            typname,
            "",
            f"`Range` of {element.python}",
            text.load,
            range_binary(element.from_binary),
            text.format,
        ),
        _row(
            multirange_oid,
            multirange_array_oid,
            multirange,
            "",
            f"tuple of `Range` of {element.python}",
            text.load_multirange,
            multirange_binary(element.from_binary),
            text.format_multirange,
        ),
    )


_UINT32_MAX = 2**32 - 1

# fmt: off
_INT4 = _integer(23, 1007, "int4", "integer", -(2**31), 2**31 - 1, "i", targets.INT32)
_INT8 = _integer(20, 1016, "int8", "bigint", -(2**63), 2**63 - 1, "q", targets.INT64)

_NUMERIC = _row(
    1700, 1231, "numeric", "", "`Decimal`", numeric.numeric_text, numeric.numeric_binary, numeric.format_numeric,
    modify=modifiers.with_precision, least=4,
    note="Exact, with the digits after the point that the server shows; also NaN and infinities. `numeric(p,s)` is a "
    "decimal of p digits, or more if the scale is negative or greater than p; it is text if it has more than 38 "
    "(Spark) or 76 digits (Arrow). A decimal cannot hold NaN.",
    examples=tuple(
        (precision << 16 | scale & 0x7FF) + 4 for precision, scale in ((10, 2), (5, -2), (3, 5), (50, 10), (100, 0))
    ),
)
_DATE = _row(
    1082, 1182, "date", "", "`date` or `ExtendedDate`", temporal.date_text, fixed("i", temporal.make_date),
    temporal.format_date, targets.DATE,
    note="Arrow and Spark cannot hold infinity; all other dates are exact.",
)
_TIMESTAMP = _row(
    1114, 1115, "timestamp", "timestamp without time zone", "`datetime` or `ExtendedTimestamp`",
    temporal.timestamp_text, fixed("q", temporal.make_timestamp), temporal.format_timestamp, targets.TIMESTAMP,
    modify=modifiers.with_seconds,
    note="Arrow and Spark cannot hold infinity and timestamps after 294247-01-10 04:00:54.775807.",
)
_TIMESTAMPTZ = _row(
    1184, 1185, "timestamptz", "timestamp with time zone", "`datetime` in UTC or `ExtendedTimestamp`",
    temporal.timestamptz_text, fixed("q", temporal.make_timestamptz), temporal.format_timestamp, targets.TIMESTAMP_UTC,
    modify=modifiers.with_seconds,
    note="The limits of timestamp apply. The instant is kept; the server does not store the zone.",
)

TABLE: tuple[Row, ...] = (
    _row(
        16, 1000, "bool", "boolean", "`bool`", scalars.boolean_text, scalars.boolean_binary, scalars.format_boolean,
        targets.BOOLEAN,
    ),
    _integer(21, 1005, "int2", "smallint", -(2**15), 2**15 - 1, "h", targets.INT16),
    _INT4,
    _INT8,
    _row(
        700, 1021, "float4", "real", "`float`", scalars.float4_text, fixed("f"), scalars.format_float4, targets.FLOAT,
        note="NaN, infinities and -0 are kept. "
        "Python gets the exact single-precision number: 1.1 is 1.10000002384185791015625.",
    ),
    _row(
        701, 1022, "float8", "double precision", "`float`", scalars.float8_text, fixed("d"), scalars.format_float8,
        targets.DOUBLE,
        note="NaN, infinities and -0 are kept. "
        "Text format is exact if the server wrote it with extra_float_digits of 1 or more.",
    ),
    _NUMERIC,
    _string(
        790, 791, "money", binary=scalars.money_binary,
        note="The text depends on the server's lc_monetary and is kept as sent. The binary format counts units whose "
        "size is not sent: it is refused, unless lc_monetary is given as C.",
    ),
    _string(25, 1009, "text"),
    _string(1043, 1015, "varchar", "character varying", modify=modifiers.with_length, least=5),
    _string(1042, 1014, "bpchar", modify=modifiers.with_length, least=5, note="`char(n)`; the padding is kept."),
    _string(
        18, 1002, "char", '"char"', scalars.char_text, scalars.char_binary,
        note="One byte: empty for the zero byte, `\\ooo` (octal) from 0x80 on.",
    ),
    _string(19, 1003, "name"),
    _row(
        17, 1001, "bytea", "", "`bytes`", scalars.bytea_text, scalars.bytea_binary, scalars.format_bytea,
        targets.BINARY,
        note="Both forms of bytea_output are read.",
    ),
    _DATE,
    _row(
        1083, 1183, "time", "time without time zone", "`time` or `ExtendedTime`", temporal.time_text,
        fixed("q", temporal.make_time), temporal.format_time, targets.TIME, modify=modifiers.with_seconds,
        note="24:00:00 is an `ExtendedTime`; Arrow cannot hold it. Spark 4.1 cannot write its time type to files.",
    ),
    _row(
        1266, 1270, "timetz", "time with time zone", "`time` with an offset or `ExtendedTime`", temporal.timetz_text,
        fixed("qi", temporal.make_timetz), temporal.format_time, modify=modifiers.with_seconds,
        note="Neither Arrow nor Spark has such a type.",
    ),
    _TIMESTAMP,
    _TIMESTAMPTZ,
    _row(
        1186, 1187, "interval", "", "`Interval`", intervals.interval_text, fixed("qii", intervals.make_interval), str,
        targets.INTERVAL, modify=modifiers.with_fields,
        note="Months, days and microseconds are kept apart. Arrow counts nanoseconds, and cannot hold infinity or "
        "times of more than 292 years. Spark has no type that holds all three parts.",
    ),
    _row(2950, 2951, "uuid", "", "`UUID`", scalars.uuid_text, scalars.uuid_binary, str),
    _string(114, 199, "json", note="The text is kept unchanged: blanks, order, repeated keys and digits."),
    _string(
        3802, 3807, "jsonb", binary=scalars.versioned_text_binary,
        note="The server's text; `json.loads(value, parse_float=Decimal)` keeps its digits.",
    ),
    _string(4072, 4073, "jsonpath", binary=scalars.versioned_text_binary),
    _string(142, 143, "xml"),
    _row(
        869, 1041, "inet", "", "`IPv4Address`, `IPv6Address`, `IPv4Interface` or `IPv6Interface`", network.inet_text,
        network.inet_binary, network.format_inet,
        note="An interface if it has a mask.",
    ),
    _row(
        650, 651, "cidr", "", "`IPv4Network` or `IPv6Network`", network.cidr_text, network.cidr_binary,
        network.format_cidr,
    ),
    _string(829, 1040, "macaddr", "", network.mac_text(6), network.mac_binary(6)),
    _string(774, 775, "macaddr8", "", network.mac_text(8), network.mac_binary(8)),
    _string(
        1560, 1561, "bit", '"bit"', scalars.bits_text, scalars.bits_binary,
        modify=modifiers.with_bits, least=1, note="The digits 0 and 1.",
    ),
    _string(
        1562, 1563, "varbit", "bit varying", scalars.bits_text, scalars.bits_binary,
        modify=modifiers.with_bits, least=1, note="The digits 0 and 1.",
    ),
    _row(
        600, 1017, "point", "", "`Point`", geometry.point_text, geometry.point_binary, geometry.format_point,
        targets.POINT,
    ),
    _row(628, 629, "line", "", "`Line`", geometry.line_text, geometry.line_binary, geometry.format_line, targets.LINE),
    _row(
        601, 1018, "lseg", "", "`LineSegment`", geometry.segment_text, geometry.segment_binary, geometry.format_segment,
        targets.LINE_SEGMENT,
    ),
    _row(
        603, 1020, "box", "", "`Box`", geometry.box_text, geometry.box_binary, geometry.format_box, targets.BOX,
        delimiter=";",
    ),
    _row(602, 1019, "path", "", "`Path`", geometry.path_text, geometry.path_binary, geometry.format_path, targets.PATH),
    _row(
        604, 1027, "polygon", "", "`Polygon`", geometry.polygon_text, geometry.polygon_binary, geometry.format_polygon,
        targets.POLYGON,
    ),
    _row(
        718, 719, "circle", "", "`Circle`", geometry.circle_text, geometry.circle_binary, geometry.format_circle,
        targets.CIRCLE,
    ),
    _string(3614, 3643, "tsvector", binary=textsearch.tsvector_binary),
    _string(3615, 3645, "tsquery", binary=textsearch.tsquery_binary),
    *_range(_INT4, "int4range", 3904, 3905, "int4multirange", 4451, 6150),
    *_range(_INT8, "int8range", 3926, 3927, "int8multirange", 4536, 6157),
    *_range(_NUMERIC, "numrange", 3906, 3907, "nummultirange", 4532, 6151),
    *_range(_TIMESTAMP, "tsrange", 3908, 3909, "tsmultirange", 4533, 6152),
    *_range(_TIMESTAMPTZ, "tstzrange", 3910, 3911, "tstzmultirange", 4534, 6153),
    *_range(_DATE, "daterange", 3912, 3913, "datemultirange", 4535, 6155),
    _integer(26, 1028, "oid", "", 0, _UINT32_MAX, "I", targets.INT64, "Unsigned."),
    _integer(28, 1011, "xid", "", 0, _UINT32_MAX, "I", targets.INT64, "Unsigned."),
    _integer(29, 1012, "cid", "", 0, _UINT32_MAX, "I", targets.INT64, "Unsigned."),
    _integer(5069, 271, "xid8", "", 0, 2**64 - 1, "Q", targets.UINT64, "Unsigned, 64 bits."),
    _string(27, 1010, "tid", "", scalars.tid_text, fixed("IH", scalars.make_tid)),
    _string(3220, 3221, "pg_lsn", "", scalars.lsn_text, fixed("II", scalars.make_lsn)),
    _string(2970, 2949, "txid_snapshot", "", scalars.snapshot_text, scalars.snapshot_binary),
    _string(5038, 5039, "pg_snapshot", "", scalars.snapshot_text, scalars.snapshot_binary),
    _row(
        22, 1006, "int2vector", "", "tuple of `int`", scalars.int2vector_text, scalars.vector_binary(21, "h"),
        scalars.format_vector, targets.vector(targets.INT16),
    ),
    _row(
        30, 1013, "oidvector", "", "tuple of `int`", scalars.oidvector_text, scalars.vector_binary(26, "I"),
        scalars.format_vector, targets.vector(targets.INT64),
    ),
    _string(1790, 2201, "refcursor"),
    _string(
        1033, 1034, "aclitem", binary=scalars.no_binary,
        note="The server has no binary format for it. `replicate` refuses it.",
    ),
    _registered(24, 1008, "regproc"),
    _registered(2202, 2207, "regprocedure"),
    _registered(2203, 2208, "regoper"),
    _registered(2204, 2209, "regoperator"),
    _registered(2205, 2210, "regclass"),
    _registered(2206, 2211, "regtype"),
    _registered(3734, 3735, "regconfig"),
    _registered(3769, 3770, "regdictionary"),
    _registered(4089, 4090, "regnamespace"),
    _registered(4096, 4097, "regrole"),
    _registered(4191, 4192, "regcollation"),
)

# Types of extensions, known by their names: their OIDs differ from database to database.
EXTENSIONS: tuple[Row, ...] = (
    _row(
        0, 0, "hstore", "", "`dict` of `str` to `str` or None", hstore.hstore_text, hstore.hstore_binary,
        hstore.format_hstore, targets.STRING_MAP,
        note="Known by its name, in any schema.",
    ),
    _string(0, 0, "citext", note="Known by its name, in any schema."),
    _string(0, 0, "ltree", binary=scalars.versioned_text_binary, note="Known by its name, in any schema."),
    _string(0, 0, "lquery", binary=scalars.versioned_text_binary, note="Known by its name, in any schema."),
    _string(0, 0, "ltxtquery", binary=scalars.versioned_text_binary, note="Known by its name, in any schema."),
)
# fmt: on
