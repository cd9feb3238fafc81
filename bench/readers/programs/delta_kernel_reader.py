"""Delta Kernel in Java, as its user guide's reader in a single process: the kernel skips files, and returns a filter
that the reader has to apply to the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from bench.readers.conditions import Condition
from bench.readers.examining import run
from bench.readers.programs.jvm import elements, start, version_of
from bench.readers.reading import ExpressionReader, Table

_TYPES = {
    "boolean": (pa.bool_(), "getBoolean"), "byte": (pa.int8(), "getByte"), "short": (pa.int16(), "getShort"),
    "integer": (pa.int32(), "getInt"), "long": (pa.int64(), "getLong"), "float": (pa.float32(), "getFloat"),
    "double": (pa.float64(), "getDouble"), "date": (pa.date32(), "getInt"), "string": (pa.string(), "getString"),
    "timestamp": (pa.timestamp("us", "UTC"), "getLong"), "timestamp_ntz": (pa.timestamp("us"), "getLong"),
    "binary": (pa.binary(), "getBinary"),
}  # fmt: skip
"""The type in Arrow, and the getter, of each type of the kernel that has no parameters."""
_LITERALS = {
    "bool": "ofBoolean", "int16": "ofShort", "int32": "ofInt", "int64": "ofLong", "float": "ofFloat",
    "double": "ofDouble", "date32[day]": "ofDate", "string": "ofString", "timestamp[us, tz=UTC]": "ofTimestamp",
    "timestamp[us]": "ofTimestampNtz", "binary": "ofBinary",
}  # fmt: skip


class DeltaKernel(ExpressionReader):
    name, formats = "Delta Kernel (Java)", ("delta",)

    def __init__(self) -> None:
        self.java = start("delta_kernel")
        self.version = version_of("delta_kernel", "delta-kernel-api")
        self.kernel = self.java.io.delta.kernel
        configuration = self.java.org.apache.hadoop.conf.Configuration()
        self.engine = self.kernel.defaults.engine.DefaultEngine.create(configuration)

    def open(self, table: Table) -> Any:
        builder = self.kernel.TableManager.loadSnapshot(table.uri)
        return (builder if table.is_last else builder.atVersion(table.version)).build(self.engine)

    def scan(self, opened: Any, columns: Sequence[str]) -> pa.Table:
        self.schema = self._schema(opened, columns)
        self.batches = list(self._batches(opened.getScanBuilder().withReadSchema(self.schema).build()))
        types = [self.schema.get(name).getDataType() for name in columns]
        values: list[list[Any]] = [[] for _ in columns]
        for batch, selected in self.batches:
            for number in range(len(columns)):
                vector = batch.getColumnVector(number)
                values[number] += [_value(vector, row) for row in selected]
        arrays = [pa.array(column, _arrow_type(type_)) for column, type_ in zip(values, types, strict=True)]
        return pa.table(arrays, names=list(columns))

    def keep(self, opened: Any, rows: pa.Table) -> list[Any]:
        return self.batches

    def ids(self, opened: Any, condition: Condition) -> list[int]:
        predicate = self._predicate(condition)
        if isinstance(opened, list):
            return self._ids(opened, self.schema, predicate)
        schema = self._schema(opened, dict.fromkeys(["id", condition.column]))
        scan = opened.getScanBuilder().withReadSchema(schema).withFilter(predicate).build()
        remaining = scan.getRemainingFilter()
        return self._ids(self._batches(scan), schema, remaining.get() if remaining.isPresent() else None)

    def _ids(self, batches: Any, schema: Any, predicate: Any) -> list[int]:
        ids = []
        for batch, selected in batches:
            if predicate is not None:
                evaluator = self.engine.getExpressionHandler().getPredicateEvaluator(schema, predicate)
                is_true = evaluator.eval(batch, self.java.java.util.Optional.empty())
                selected = [row for row in selected if not is_true.isNullAt(row) and is_true.getBoolean(row)]
            vector = batch.getColumnVector(schema.indexOf("id"))
            ids += [vector.getInt(row) for row in selected]
        return ids

    def _schema(self, opened: Any, columns: Any) -> Any:
        schema = opened.getSchema()
        return self.kernel.types.StructType([schema.get(name) for name in columns])

    def _batches(self, scan: Any) -> Iterator[tuple[Any, list[int]]]:
        """Yield the batches of a scan, with the numbers of the rows that no deletion vector removes."""
        state = scan.getScanState(self.engine)
        internal = self.kernel.internal
        physical = internal.data.ScanStateRow.getPhysicalDataReadSchema(state)
        none = self.java.java.util.Optional.empty()
        for files in elements(scan.getScanFiles(self.engine)):
            for file in elements(files.getRows()):
                status = internal.InternalScanFileUtils.getAddFileStatus(file)
                results = self.engine.getParquetHandler().readParquetFiles(
                    internal.util.Utils.singletonCloseableIterator(status), physical, none
                )
                for result in elements(results):
                    data = internal.util.Utils.singletonCloseableIterator(result.getData())
                    for batch in elements(self.kernel.Scan.transformPhysicalData(self.engine, state, file, data)):
                        rows, selection = range(batch.getData().getSize()), batch.getSelectionVector()
                        vector = selection.get() if selection.isPresent() else None
                        yield batch.getData(), [row for row in rows if vector is None or vector.getBoolean(row)]

    def _predicate(self, condition: Condition) -> Any:
        expressions = self.kernel.expressions
        column = expressions.Column(condition.column)
        values = [self._literal(value, condition.type) for value in condition.values]
        match condition.operator:
            case "IS NULL" | "IS NOT NULL":
                return expressions.Predicate(condition.operator.replace(" ", "_"), column)
            case "IN":
                return expressions.In(column, values)
            case "<>":
                return expressions.Predicate("NOT", expressions.Predicate("=", column, values[0]))
        return expressions.Predicate(condition.operator, column, values[0])

    def _literal(self, value: Any, type_: pa.DataType) -> Any:
        literals = self.kernel.expressions.Literal
        if pa.types.is_decimal(type_):
            return literals.ofDecimal(value, type_.precision, type_.scale)
        if pa.types.is_date32(type_):
            value = pa.scalar(value, type_).cast(pa.int32()).as_py()
        elif pa.types.is_timestamp(type_):
            value = pa.scalar(value, type_).cast(pa.int64()).as_py()
        return getattr(literals, _LITERALS[str(type_)])(value)


def _value(vector: Any, row: int) -> Any:
    if vector.isNullAt(row):
        return None
    type_ = vector.getDataType()
    match type_.getClass().getSimpleName():
        case "DecimalType":
            return vector.getDecimal(row)
        case "ArrayType":
            elements = vector.getArray(row).getElements()
            return [_value(elements, number) for number in range(elements.getSize())]
        case "StructType":
            return {name: _value(vector.getChild(number), row) for number, name in enumerate(type_.fieldNames())}
    return getattr(vector, _TYPES[type_.toString()][1])(row)


def _arrow_type(type_: Any) -> pa.DataType:
    match type_.getClass().getSimpleName():
        case "DecimalType":
            return pa.decimal128(type_.getPrecision(), type_.getScale())
        case "ArrayType":
            return pa.list_(_arrow_type(type_.getElementType()))
        case "StructType":
            return pa.struct([(field.getName(), _arrow_type(field.getDataType())) for field in type_.fields()])
    return _TYPES[type_.toString()][0]


if __name__ == "__main__":
    run(DeltaKernel)
