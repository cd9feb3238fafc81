"""Iceberg's Java library: the generic rows of `IcebergGenerics`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from bench.readers.conditions import Condition
from bench.readers.examining import run
from bench.readers.programs.jvm import elements, start, version_of
from bench.readers.reading import ExpressionReader, Table

_PREDICATES = {"=": "equal", "<>": "notEqual", "<": "lessThan", ">=": "greaterThanOrEqual", "IN": "in"}
_TYPES = {
    "BOOLEAN": pa.bool_(), "INTEGER": pa.int32(), "LONG": pa.int64(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(),
    "DATE": pa.date32(), "TIME": pa.time64("us"), "STRING": pa.string(), "BINARY": pa.binary(), "UUID": pa.string(),
}  # fmt: skip


@dataclass(frozen=True)
class _Copy:
    """The records of a full scan, and their type."""

    records: list[Any]
    struct: Any


class IcebergJava(ExpressionReader):
    name, formats = "Iceberg's Java library", ("iceberg",)

    def __init__(self) -> None:
        self.java = start("iceberg_java")
        self.version = version_of("iceberg_java", "iceberg-core")
        self.iceberg = self.java.org.apache.iceberg
        self.io = self.iceberg.hadoop.HadoopFileIO(self.java.org.apache.hadoop.conf.Configuration())
        self.micros = self.java.java.time.temporal.ChronoUnit.MICROS
        self.epoch = self.java.java.time.LocalDateTime.parse("1970-01-01T00:00:00")
        self.epoch_utc = self.java.java.time.OffsetDateTime.parse("1970-01-01T00:00:00Z")

    def open(self, table: Table) -> Any:
        operations = self.iceberg.StaticTableOperations(table.metadata, self.io)
        stored = self.iceberg.BaseTable(operations, table.name)
        self.schema = stored.schema()
        if not table.is_last:
            self.schema = stored.schemas().get(stored.snapshot(table.version).schemaId())

        def scan() -> Any:
            builder = self.iceberg.data.IcebergGenerics.read(stored)
            return builder if table.is_last else builder.useSnapshot(table.version)

        return scan

    def scan(self, opened: Any, columns: Sequence[str]) -> pa.Table:
        records = list(elements(opened().select(list(columns)).build().iterator()))
        self.copy = _Copy(records, self.schema.select(list(columns)).asStruct())
        fields = [self.schema.findField(name).type() for name in columns]
        types = [_arrow_type(type_) for type_ in fields]
        values = [[self._value(row.getField(name)) for row in records] for name in columns]
        return pa.table(
            [pa.array(column, type_) for column, type_ in zip(values, types, strict=True)], names=list(columns)
        )

    def keep(self, opened: Any, rows: pa.Table) -> _Copy:
        return self.copy

    def ids(self, opened: Any, condition: Condition) -> list[int]:
        expression = self._expression(condition)
        if isinstance(opened, _Copy):
            evaluator = self.iceberg.expressions.Evaluator(opened.struct, expression)
            wrapper = self.iceberg.data.InternalRecordWrapper(opened.struct)
            return [record.getField("id") for record in opened.records if evaluator.eval(wrapper.wrap(record))]
        # Without the column, the library refuses filters on nested columns.
        records = opened().where(expression).select(["id", condition.column]).build().iterator()
        return [record.getField("id") for record in elements(records)]

    def _expression(self, condition: Condition) -> Any:
        expressions, column = self.iceberg.expressions.Expressions, condition.column
        values = [_literal(value) for value in condition.values]
        match condition.operator:
            case "IS NULL":
                return expressions.isNull(column)
            case "IS NOT NULL":
                return expressions.notNull(column)
        if pa.types.is_float32(condition.type):
            return self._comparison_of_floats(_PREDICATES[condition.operator], column, values)
        return getattr(expressions, _PREDICATES[condition.operator])(
            column, values if condition.operator == "IN" else values[0]
        )

    def _comparison_of_floats(self, name: str, column: str, values: Sequence[float]) -> Any:
        # py4j makes a double of a float, and Iceberg compares no float with an infinite double.
        floats = self._array("java.lang.Float", values)
        arguments = self._array("java.lang.Object", [column, None])
        if name == "in":
            arguments[1] = floats
        else:
            self.java.java.lang.System.arraycopy(floats, 0, arguments, 1, 1)
        type_ = "[Ljava.lang.Object;" if name == "in" else "java.lang.Object"
        classes = self._array("java.lang.Class", [self._class("java.lang.String"), self._class(type_)])
        expressions = self._class("org.apache.iceberg.expressions.Expressions")
        return expressions.getMethod(name, classes).invoke(None, arguments)

    def _class(self, name: str) -> Any:
        return self.java.java.lang.Class.forName(name)

    def _array(self, name: str, values: Sequence[Any]) -> Any:
        array = self.java.java.lang.reflect.Array.newInstance(self._class(name), len(values))
        for number, value in enumerate(values):
            if value is not None:
                array[number] = value
        return array

    def _value(self, value: Any) -> Any:
        """Return a value of a generic row for Arrow: times as days and microseconds."""
        if not hasattr(value, "getClass"):
            return value
        match value.getClass().getSimpleName():
            case "LocalDate":
                return value.toEpochDay()
            case "LocalTime":
                return value.toNanoOfDay() // 1000
            case "LocalDateTime":
                return self.micros.between(self.epoch, value)
            case "OffsetDateTime":
                return self.micros.between(self.epoch_utc, value)
            case "GenericRecord":
                names = [field.name() for field in value.struct().fields()]
                return {name: self._value(value.getField(name)) for name in names}
            case "HeapByteBuffer":
                return value.array()
            case "UUID":
                return value.toString()
        return [self._value(element) for element in value]


def _arrow_type(type_: Any) -> pa.DataType:
    name = type_.typeId().toString()
    match name:
        case "TIMESTAMP":
            return pa.timestamp("us", "UTC" if type_.shouldAdjustToUTC() else None)
        case "DECIMAL":
            return pa.decimal128(type_.precision(), type_.scale())
        case "LIST":
            return pa.list_(_arrow_type(type_.elementType()))
        case "STRUCT":
            return pa.struct([(field.name(), _arrow_type(field.type())) for field in type_.fields()])
    return _TYPES[name]


def _literal(value: Any) -> Any:
    # Iceberg parses times.
    return value.isoformat() if hasattr(value, "isoformat") else value


if __name__ == "__main__":
    run(IcebergJava)
