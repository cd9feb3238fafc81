"""Every value of every capture."""

from __future__ import annotations

import collections
import csv
import gzip
import io
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from logicalrep import Decoder
from logicalrep.values import Column, ColumnValueError, column_type
from tests.protocol.captured import COLLECTION

CODECS = {"UTF8": "utf-8", "LATIN1": "latin-1"}
MAJORS = sorted(path.name for path in COLLECTION.glob("pg*"))

pytestmark = pytest.mark.thorough


def captures(major: str, workload: str = "*") -> list[pathlib.Path]:
    return sorted(
        path
        for path in (COLLECTION / major).glob(f"{workload}/*.jsonl.gz")
        if not path.name.startswith("truth.") and ".raw." not in path.name
    )


def header(path: pathlib.Path) -> dict[str, Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        first: dict[str, Any] = json.loads(file.readline())
    return first


class Tuple:
    """One tuple of a row: its relation's columns and the values sent for them."""

    def __init__(self, place: tuple[str, str], columns: list[Column], data: Any) -> None:
        self.place = place
        self.cells = [
            (column, chr(kind), value) for column, kind, value in zip(columns, data.kinds, data.values, strict=True)
        ]


def tuples(path: pathlib.Path) -> Iterator[Tuple]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        head = json.loads(file.readline())
        decoder = Decoder(
            head["proto_version"],
            parallel=head["options"].get("streaming") == "parallel",
            two_phase=head["slot_two_phase"],
            encoding=CODECS[head["client_encoding"]],
        )
        columns: dict[int, list[Column]] = {}
        for line in file:
            message: Any = decoder.decode(bytes.fromhex(json.loads(line)["data"]))
            if message.tag == "R":
                columns[message.relation_id] = [
                    Column(
                        column.name,
                        column_type(
                            column.type_id,
                            column.type_modifier,
                            decoder.types,
                            lc_monetary=(head["session"] or {}).get("lc_monetary"),
                        ),
                        table=f"{message.namespace}.{message.name}",
                        encoding=decoder.encoding,
                    )
                    for column in message.columns
                ]
            elif message.tag in "IUD":
                relation = decoder.relations[message.relation_id]
                for name in ("old", "new"):
                    data = getattr(message, name, None)
                    if data is not None:
                        yield Tuple((relation.name, name), columns[message.relation_id], data)


def dates_in_another_style(column: Column) -> bool:
    return any(word in column.type.name for word in ("date", "timestamp", "interval", "tsrange", "tstzrange"))


@pytest.mark.parametrize("major", MAJORS)
def test_every_value_loads(major: str) -> None:
    refused: collections.Counter[tuple[str, str, str]] = collections.Counter()
    styles: collections.Counter[tuple[str, str, str]] = collections.Counter()
    count = 0
    for path in captures(major):
        session = header(path)["session"] or {}
        usual = session.get("DateStyle", "ISO").startswith("ISO")
        own_form = usual and major != "pg10"  # PostgreSQL 10 writes more digits of floating-point numbers
        for row in tuples(path):
            for column, kind, value in row.cells:
                if kind not in "tb":
                    continue
                count += 1
                try:
                    loaded = column.load(kind, value)
                except ColumnValueError as error:
                    in_style = not usual and kind == "t" and dates_in_another_style(column)
                    (styles if in_style else refused)[kind, column.type.name, error.reason] += 1
                    continue
                text = column.type.to_text(loaded)
                if kind == "t" and own_form:
                    assert text == value.decode(column.encoding), column
    assert count > 500
    assert all("style" in reason.lower() for _, _, reason in styles)
    # A range made with CREATE TYPE; and the largest double, which extra_float_digits = 0 rounds up beyond all doubles.
    assert refused.keys() <= {
        ("b", "public.f8range", "the binary format of this type is not known"),
        ("t", "double precision", "too large for double precision"),
    }


NAMES_OR_OIDS = {"c_regclass", "c_regtype", "c_regproc"}
WITH_BINARY = [major for major in MAJORS if any("bin" in path.name for path in captures(major, "types"))]


@pytest.mark.parametrize("major", WITH_BINARY)
@pytest.mark.parametrize("workload", ["types", "basic", "toast", "names"])
def test_binary_and_text_are_equal(major: str, workload: str) -> None:
    paths = captures(major, workload)
    options = {path: header(path)["options"] for path in paths if "oddstyle" not in path.name}
    whole = [path for path in options if "streaming" not in options[path] and "origin" not in options[path]]
    texts = [path for path in whole if "binary" not in options[path]]
    binaries = [path for path in whole if "binary" in options[path]]
    assert texts
    for path in binaries:
        compared = 0
        for from_text, from_binary in zip(tuples(texts[0]), tuples(path), strict=True):
            assert from_text.place == from_binary.place
            for (column, kind, value), (_, other_kind, other) in zip(from_text.cells, from_binary.cells, strict=True):
                assert (kind in "tb") == (other_kind in "tb")
                if other_kind != "b" or column.name in NAMES_OR_OIDS or column.type.name == "public.f8range":
                    continue
                loaded, other_loaded = column.load(kind, value), column.load(other_kind, other)
                assert repr(loaded) == repr(other_loaded), column
                assert column.type.to_text(other_loaded) == value.decode(column.encoding)
                compared += 1
        assert compared


@pytest.mark.parametrize("major", [major for major in MAJORS if (COLLECTION / major / "types").exists()])
def test_the_final_rows_of_the_workload_types(major: str) -> None:
    with gzip.open(COLLECTION / major / "types" / "truth.final.json.gz", "rt", encoding="utf-8") as file:
        truth = json.load(file)
    for path in captures(major, "types"):
        if "oddstyle" in path.name or "none" in path.name:
            continue
        rows: dict[str, dict[str, dict[str, str | None]]] = collections.defaultdict(dict)
        for row in tuples(path):
            (table, which), cells = row.place, row.cells
            values = {
                column.name: None if kind == "n" else _text(column, kind, value)
                for column, kind, value in cells
                if kind != "u"
            }
            key = values.get("id") or ""
            if which == "old":
                rows[table].pop(key, None)
            else:
                rows[table][key] = {**rows[table].get(key, {}), **values}
        for table in truth["publications"]["pub_all"]:
            if "id" not in table["key"] or not table["replayable"]:
                continue
            names = [column["name"] for column in table["columns"]]
            expected = {
                fields[0]: dict(zip(names, fields, strict=True)) for fields in csv.reader(io.StringIO(table["csv"]))
            }
            final = rows[table["table"]]
            assert final.keys() == expected.keys()
            for key, fields in expected.items():
                for name, text in fields.items():
                    # An empty field may be NULL.
                    ours = final[key][name]
                    if ours is not None or text:
                        comparable = not (major == "pg10" and name in ("c_f4", "c_f8"))
                        binary = "bin" in path.name and name in (*NAMES_OR_OIDS, "c_rng")
                        assert ours == text or not comparable or binary, (path, key, name)
            for column in table["columns"]:
                if column["type_oid"] < 10000:
                    assert column_type(column["type_oid"], column["typmod"]).name == column["type"]


def _text(column: Column, kind: str, value: bytes) -> str | None:
    loaded, text = column.load_or_text(kind, value)
    return text if text is not None else column.type.to_text(loaded)
