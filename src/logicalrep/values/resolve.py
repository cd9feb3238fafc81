"""Resolution of a type's OID and modifier, with the session's Type messages, to a ColumnType."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from logicalrep.values.catalog import CatalogType, TypeCatalog, TypeName
from logicalrep.values.column_type import ColumnType, string_type
from logicalrep.values.table import EXTENSIONS, TABLE, Row, array_of
from logicalrep.values.types import scalars
from logicalrep.values.types.arrays import MOST_DIMENSIONS, ArrayText, array_binary, for_element_type
from logicalrep.values.types.binary import BinaryReader
from logicalrep.values.types.records import format_record

__all__ = ["column_type"]


def column_type(
    type_oid: int,
    type_modifier: int = -1,
    types: Mapping[Any, TypeName] | None = None,
    *,
    lc_monetary: str | None = None,
    catalog: TypeCatalog | None = None,
) -> ColumnType:
    """Return the type of a column from the facts of a Relation message.

    Call it once per column and reuse the type: its loaders are then called for every value. It never fails: values
    of an unknown type stay text, and are refused in binary format.

    Args:
        type_oid: the OID of the column's type.
        type_modifier: its modifier, -1 for none.
        types: the session's Type messages so far, by OID. The mapping is read again when a composite value or an
            array in binary format names a type, so pass the session's own mapping.
        lc_monetary: the server's setting, if known. The binary format of money can be read if it is C or POSIX.
        catalog: the server catalog's facts on types, if available. Without them a name that begins with _ may be an
            array's, with any delimiter, or not: the values of such types stay text.

    Example:
        >>> column_type(1700, 655366).load("t", b"19.90")  # numeric(10,2)
        Decimal('19.90')
    """
    resolver = _Resolver({} if types is None else types, lc_monetary, catalog or TypeCatalog())
    return resolver.resolve(type_oid, type_modifier)


_BY_OID = {row.oid: row for row in TABLE}
_BY_ARRAY_OID = {row.array_oid: row for row in TABLE if row.array_oid}
_BY_TYPNAME = {row.typname: row for row in TABLE}
_EXTENSIONS = {row.typname: row for row in EXTENSIONS}

# Composite values contain composite values and arrays of them: refuse deep values before Python's stack overflows.
_DEEPEST = 16

# A few bytes in binary format can stand for a long text: quotes double at each level, and a numeric has zeros that are
# not sent. The text of a value may exceed its bytes by these limits.
_LONGER, _TIMES = 1 << 20, 64


class _Resolver:
    """Finds types; `depth` is the number of values that enclose the value being resolved."""

    def __init__(
        self, types: Mapping[Any, TypeName], lc_monetary: str | None, catalog: TypeCatalog, depth: int = 0
    ) -> None:
        self.types = types
        self.lc_monetary = lc_monetary
        self.catalog = catalog
        self.depth = depth

    def resolve(self, oid: int, modifier: int) -> ColumnType:
        if oid in _BY_OID:
            return self._scalar(_BY_OID[oid], modifier)
        if oid in _BY_ARRAY_OID:
            return self._array(_BY_ARRAY_OID[oid], modifier)
        announced = self.types.get(oid)
        catalog_type = self.catalog.find(oid, announced)
        named = catalog_type or announced
        if named is None:
            return string_type(f"type {oid}", _not_announced(oid))
        namespace, name = named.namespace, named.name
        if namespace in ("", "pg_catalog"):
            if name in _BY_TYPNAME:
                return self._scalar(_BY_TYPNAME[name], modifier)
            if name.startswith("_") and name[1:] in _BY_TYPNAME:
                return self._array(_BY_TYPNAME[name[1:]], modifier)
        if catalog_type is not None:
            return self._from_catalog(catalog_type)
        if name in _EXTENSIONS:
            return _in_schema(_EXTENSIONS[name].type, namespace)
        if name.startswith("_") and name[1:] in _EXTENSIONS:
            return _array_of_extension(namespace, name[1:])
        return string_type(_qualified(namespace, name), self._named_binary)

    def _from_catalog(self, catalog_type: CatalogType) -> ColumnType:
        element = catalog_type.element
        if element is None:
            if catalog_type.is_base and catalog_type.name in _EXTENSIONS:
                return _in_schema(_EXTENSIONS[catalog_type.name].type, catalog_type.namespace)
            return string_type(_qualified(catalog_type.namespace, catalog_type.name), self._named_binary)
        if element.is_base and element.name in _EXTENSIONS:
            return _array_of_extension(element.namespace, element.name)
        # This holds for a domain too: the elements of its arrays are not read like its base type.
        element_type = string_type(_qualified(element.namespace, element.name), scalars.no_binary)
        return array_of(element_type, self._text_loader, catalog_type.delimiter)

    def _scalar(self, row: Row, modifier: int) -> ColumnType:
        column = row.modified(modifier)
        if row.text_depends_on == "lc_monetary" and self.lc_monetary in ("C", "POSIX"):
            return replace(column, from_binary=scalars.money_binary_in_c_locale)
        return column

    def _array(self, row: Row, modifier: int) -> ColumnType:
        element = self._scalar(row, modifier)
        return array_of(element, for_element_type(row.oid, element.from_binary), row.delimiter)

    # --- text from binary --------------------------------------------------------------------------------------

    def _text_loader(self, element_oid: int) -> Callable[[bytes, str], str]:
        element = self._inner().resolve(element_oid, -1)
        allowance = _Allowance()

        def load(value: bytes, encoding: str) -> str:
            return allowance.spend(element.to_text(element.from_binary(value, encoding)), len(value))

        return load

    def _named_binary(self, value: bytes, encoding: str) -> str:
        """Read a value of a type known only by name: an array or a composite value by its form, else a label."""
        element_oid = _element_oid(value)
        if element_oid is not None:
            elements = array_binary(self._text_loader)(value, encoding)
            form = ArrayText(scalars.text_text, scalars.text_text, self._delimiter(element_oid))
            return form.format(elements)
        fields = _record_fields(value)
        if fields is not None:
            return self._record_text(fields, encoding)
        text = str(value, encoding, "replace")
        if len(text) > _LONGEST_LABEL or _NO_LABEL.search(text):
            raise ValueError("the binary format of this type is not known")
        return text

    def _delimiter(self, element_oid: int) -> str:
        row = _BY_OID.get(element_oid)
        announced = self.types.get(element_oid)
        if row is None and announced is not None and announced.namespace in ("", "pg_catalog"):
            row = _BY_TYPNAME.get(announced.name)
        return "," if row is None else row.delimiter

    def _record_text(self, fields: list[tuple[int, bytes | None]], encoding: str) -> str:
        inner = self._inner()
        loaders: dict[int, ColumnType] = {}
        allowance = _Allowance()
        texts: list[str | None] = []
        for oid, value in fields:
            if value is None:
                texts.append(None)
                continue
            field = loaders.get(oid) or loaders.setdefault(oid, inner.resolve(oid, -1))
            texts.append(allowance.spend(field.to_text(field.from_binary(value, encoding)), len(value)))
        return format_record(texts)

    def _inner(self) -> _Resolver:
        if self.depth == _DEEPEST:
            raise ValueError(f"values nested more than {_DEEPEST} deep")
        return _Resolver(self.types, self.lc_monetary, self.catalog, self.depth + 1)


class _Allowance:
    def __init__(self) -> None:
        self._remaining = _LONGER

    def spend(self, text: str, length: int) -> str:
        self._remaining += _TIMES * length - len(text)
        if self._remaining < 0:
            raise ValueError("the text of the value is far longer than its bytes allow")
        return text


def _element_oid(value: bytes) -> int | None:
    """Return the OID of an array's element type; None if the bytes are not an array.

    An array's second number is its flag for NULLs; a composite value has a type's OID there, which is larger. An
    enum's label has no zero bytes.
    """
    reader = BinaryReader(value)
    try:
        dimensions, has_null, element_oid = reader.uint32(), reader.uint32(), reader.uint32()
    except ValueError:
        return None
    return element_oid if dimensions <= MOST_DIMENSIONS and has_null <= 1 else None


def _array_of_extension(namespace: str, name: str) -> ColumnType:
    element = _in_schema(_EXTENSIONS[name].type, namespace)
    return array_of(element, lambda oid: element.from_binary)


def _record_fields(value: bytes) -> list[tuple[int, bytes | None]] | None:
    """Return a composite value's fields with the OIDs of their types; None if the bytes are not a composite value.

    The format is a count, and for each field an OID and a value with its length. Bytes that fit it exactly are a
    composite value, since an enum's label has no zero bytes. A value without fields (a bare count of 0) cannot be
    recognized.
    """
    reader = BinaryReader(value)
    try:
        fields = [(reader.uint32(), reader.field()) for _ in range(reader.count(8))]
        reader.end()
    except ValueError:
        return None
    return fields or None


# NAMEDATALEN - 1 bytes on the server: the longest label of an enum.
_LONGEST_LABEL = 63
_NO_LABEL = re.compile("[\x00-\x1f\x7f\ufffd]")


def _not_announced(oid: int) -> Callable[[bytes, str], str]:
    def refuse(value: bytes, encoding: str) -> str:
        raise ValueError(f"no Type message announced the type with OID {oid}, so its binary format is not known")

    return refuse


# --- names -----------------------------------------------------------------------------------------------------


def _in_schema(column: ColumnType, namespace: str) -> ColumnType:
    return replace(column, name=_qualified(namespace, column.name))


_PLAIN_NAME = re.compile("[a-z_][a-z0-9_$]*")


def _qualified(namespace: str, name: str) -> str:
    return ".".join(_identifier(part) for part in (namespace, name) if part)


def _identifier(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name):
        return name
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
