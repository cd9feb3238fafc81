"""The texts of a table's values, for every encoding of a session and both formats of values."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from typing import Self

from logicalrep.transactions.relations import TableDescription
from logicalrep.transactions.tags import BINARY
from logicalrep.values import Column, TypeCatalog, column_type
from logicalrep_protocol.v1 import TupleData
from logicalrep_runtime.errors import LogicalRepError


class TextError(LogicalRepError, ValueError):
    """A value is not valid in the session's encoding."""

    code = "VALUE_NOT_TEXT"

    @classmethod
    def of(cls, columns: Iterable[str]) -> Self:
        """Return the error, which names only columns: the values may have to be masked."""
        names = ", ".join(sorted({*columns}))
        return cls(f"a value of the column {names} is not text in the session's encoding, UTF8")


@contextmanager
def refuse_texts() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise TextError(f"a value is not text in the session's encoding, UTF8: {error}") from None


class Texts:
    def __init__(self, encoding: str, text_columns: Container[str] = (), catalog: TypeCatalog | None = None) -> None:
        self._encoding = encoding
        self._text_columns = text_columns
        self._catalog = catalog
        self._columns: dict[int, tuple[TableDescription, tuple[Column, ...]]] = {}

    def columns(self, relation: TableDescription) -> tuple[Column, ...]:
        cached = self._columns.get(id(relation))
        if cached is None or cached[0] is not relation:
            types = {type_.type_id: type_ for type_ in relation.types if type_ is not None}
            columns = []
            for column in relation.columns:
                type_ = column_type(column.type_id, column.type_modifier, types, catalog=self._catalog)
                if column.name in self._text_columns:
                    type_ = type_.as_sent()
                columns.append(Column(column.name, type_, str(relation), self._encoding))
            cached = self._columns[id(relation)] = relation, tuple(columns)
        return cached[1]

    def of(self, relation: TableDescription, row: TupleData) -> list[bytes | None]:
        """Return a row's values as UTF-8 text. Raises ColumnValueError for a value that cannot be read."""
        values = list(row.values)
        for at, (kind, column) in enumerate(zip(row.kinds, self.columns(relation), strict=True)):
            value = values[at]
            if value is None:
                continue
            if kind == BINARY:
                values[at] = column.type.to_text(column.load(kind, value)).encode()
            elif self._encoding != "utf-8":
                values[at] = value.decode(self._encoding).encode()
        return values
