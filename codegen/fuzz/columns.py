"""Batches of a spec's messages: columns must hold what the oracle reads, and rows be refused where the decoder does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from codegen.fuzz.oracle import Oracle, Row, Values, name_of, type_of
from codegen.fuzz.specs import Spec

_Drawn = Mapping[int, list[tuple[str, bytes, Values, Mapping[str, Any]]]]


def batches(spec: Spec, columnar: ModuleType, package: ModuleType, drawn: _Drawn) -> Iterator[tuple[str, str]]:
    """Yield a summary and the details of every disagreement of batches with the oracle's values."""
    import pyarrow as pa

    for version, messages in drawn.items():
        oracle = Oracle(spec, version)
        for title, data, values, facts in messages:
            if title == "Close":
                continue
            for damaged in (data, data[:-1], data + b"\0"):
                session = columnar.Session(version=version, **facts)
                array = pa.array([b"", damaged], pa.binary())
                batch, _ = columnar.decode_batch(array, session, errors="column")
                batch.validate(full=True)
                columns = [column.cast(_without_times(pa, column.type)) for column in batch.columns]
                values_by_name = pa.RecordBatch.from_arrays(columns, batch.schema.names).to_pylist()[1]
                row = {name: value for name, value in values_by_name.items() if value is not None}
                shown = f"{title} in version {version} with {dict(facts)}: {damaged[:60].hex(' ')}\n{row}"
                decoder = package.Decoder(version)
                for name, value in facts.items():
                    setattr(decoder, name, value)
                # Batches do not know what is described.
                for describing, numbers in oracle.references(title, values).items():
                    decoder.described[describing].update(dict.fromkeys(numbers))
                try:
                    decoder.decode(damaged)
                except ValueError as error:
                    if row.get("error") != str(error):
                        yield "do not refuse as the decoder", f"{shown}\n{error}"
                    continue
                if "error" in row:
                    yield "refuse right bytes", shown
                elif damaged == data:
                    expected_row = {"tag": chr(data[0]), **dict(_columns(oracle, title, values, ""))}
                    if row != {name: value for name, value in expected_row.items() if value is not None}:
                        yield "hold other values", f"{shown}\nwanted {expected_row}"


def _columns(oracle: Oracle, title: str, values: Values, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the columns of a layout with their values."""
    rows = oracle.rows(oracle.layouts[title])
    for row in rows:
        if not oracle.is_attribute(rows, row):
            continue
        name, own = name_of(row), row.get("batch column", name_of(row))
        if oracle.choice(row) is not None:
            cells = [
                {"kind": kind, "value": value} for kind, value in zip(values["kinds"], values["values"], strict=True)
            ]
            yield prefix.removesuffix("_") if prefix and own == name else prefix + own, cells
        elif type_of(row) in oracle.layouts and "repeat" not in row:
            if values[name] is not None:
                yield from _columns(oracle, type_of(row), values[name], f"{prefix}{own}_")
        elif type_of(row) in oracle.layouts:
            yield prefix + own, [dict(_columns(oracle, type_of(row), item, "")) for item in values[name]]
        elif isinstance(values[name], tuple):
            yield prefix + own, [_value(oracle, row, item) for item in values[name]]
        else:
            yield prefix + own, _value(oracle, row, values[name])


def _value(oracle: Oracle, row: Row, value: Any) -> Any:
    named = type_of(row).partition(" (")[2].removesuffix(")") or row.get("is", "")
    if value is None or "arrow" not in oracle.types.get(named, {}):
        return value
    # Times wrap around 64 bits.
    return (int(value) + oracle.types[named]["epoch"] + (1 << 63)) % (1 << 64) - (1 << 63)


def _without_times(pa: Any, kind: Any) -> Any:
    """Return an Arrow type with integers for times, as Python's datetime ends with the year 9999."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(_without_times(pa, kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_times(pa, field.type)) for field in kind])
    return kind
