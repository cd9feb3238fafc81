"""The part of Thrift's compact protocol that Parquet footers use, decoded and encoded.

Source: "Thrift Compact Protocol Encoding" of Apache Thrift.
"""

from __future__ import annotations

from typing import Any

Struct = dict[int, tuple[int, Any]]
"""The type and value of each field of a struct, by the field's number."""
List = tuple[int, list[Any]]
"""The type of a list's items, and the items."""

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)


def read_struct(data: bytes, at: int = 0) -> tuple[Struct, int]:
    """Return the struct at an offset, and the offset behind it. Raises ValueError or IndexError for other data."""
    fields: Struct = {}
    number = 0
    while (header := data[at]) != 0:
        at += 1
        if header >> 4:
            number += header >> 4
        else:
            number, at = _read_integer(data, at)
        type_ = header & 15
        if type_ in (TRUE, FALSE):
            fields[number] = (type_, None)
        else:
            value, at = _read_value(data, at, type_)
            fields[number] = (type_, value)
    return fields, at + 1


def encoded(fields: Struct) -> bytes:
    parts, last_number = [], 0
    for number, (type_, value) in fields.items():
        step = number - last_number
        parts.append(bytes([step << 4 | type_]) if 0 < step < 16 else bytes([type_]) + _encoded_integer(number))
        if type_ not in (TRUE, FALSE):
            parts.append(_encoded_value(type_, value))
        last_number = number
    return b"".join(parts) + b"\0"


def _read_value(data: bytes, at: int, type_: int) -> tuple[Any, int]:
    if type_ in (I16, I32, I64):
        return _read_integer(data, at)
    if type_ == STRUCT:
        return read_struct(data, at)
    if type_ == BINARY:
        size, at = _read_varint(data, at)
        return data[at : at + size], at + size
    if type_ in (LIST, SET):
        header, at = data[at], at + 1
        size, item_type = header >> 4, header & 15
        if size == 15:
            size, at = _read_varint(data, at)
        items = []
        for _ in range(size):
            item, at = _read_value(data, at, item_type)
            items.append(item)
        return (item_type, items), at
    size = {TRUE: 1, FALSE: 1, BYTE: 1, DOUBLE: 8}.get(type_, 0)
    if not size:
        raise ValueError(f"no Parquet footer has Thrift's type {type_}")
    return data[at : at + size], at + size


def _encoded_value(type_: int, value: Any) -> bytes:
    if type_ in (I16, I32, I64):
        return _encoded_integer(value)
    if type_ == STRUCT:
        return encoded(value)
    if type_ == BINARY:
        return _encoded_varint(len(value)) + bytes(value)
    if type_ in (LIST, SET):
        item_type, items = value
        header = (
            bytes([len(items) << 4 | item_type])
            if len(items) < 15
            else bytes([0xF0 | item_type]) + _encoded_varint(len(items))
        )
        return header + b"".join(_encoded_value(item_type, item) for item in items)
    return bytes(value)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _read_integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _read_varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _encoded_varint(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _encoded_integer(value: int) -> bytes:
    return _encoded_varint(value << 1 if value >= 0 else (~value << 1) | 1)
