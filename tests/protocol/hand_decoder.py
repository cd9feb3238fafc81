"""A small decoder of pgoutput's messages, written by hand from the documentation's page.

It shares nothing with the package: it reads one field after the other, as the page lists them, and hands back plain
values. The tests hold the generated codecs against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SINCE = {
    "B": ("Begin", 1),
    "M": ("Message", 1),
    "C": ("Commit", 1),
    "O": ("Origin", 1),
    "R": ("Relation", 1),
    "Y": ("Type", 1),
    "I": ("Insert", 1),
    "U": ("Update", 1),
    "D": ("Delete", 1),
    "T": ("Truncate", 1),
    "S": ("StreamStart", 2),
    "E": ("StreamStop", 2),
    "c": ("StreamCommit", 2),
    "A": ("StreamAbort", 2),
    "b": ("BeginPrepare", 3),
    "P": ("Prepare", 3),
    "K": ("CommitPrepared", 3),
    "r": ("RollbackPrepared", 3),
    "p": ("StreamPrepare", 3),
}
"""Each tag's message, and the protocol version that brought it."""


class RefusedError(Exception):
    """The bytes are no message."""


@dataclass(frozen=True)
class Plain:
    """A message, or a part of one, as a name and plain values; what is absent is not among them."""

    name: str
    values: dict[str, Any]


class Reader:
    """The bytes of a message and how far they have been read."""

    def __init__(self, data: bytes, encoding: str) -> None:
        self.data = data
        self.encoding = encoding
        self.position = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.position + count > len(self.data):
            raise RefusedError(f"{count} bytes at {self.position}")
        self.position += count
        return self.data[self.position - count : self.position]

    def unsigned(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def signed(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big", signed=True)

    def nonzero(self, width: int) -> int:
        if (value := self.unsigned(width)) == 0:
            raise RefusedError("zero")
        return value

    def count(self, width: int) -> int:
        if (value := self.signed(width)) < 0:
            raise RefusedError(f"{value} of something")
        return value

    def one_of(self, characters: str) -> str:
        character = chr(self.unsigned(1))
        if character not in characters:
            raise RefusedError(f"{character!r} is none of {characters}")
        return character

    def no_flags(self) -> None:
        if self.unsigned(1) != 0:
            raise RefusedError("flags")

    def text(self) -> str:
        end = self.data.find(b"\0", self.position)
        if end < 0:
            raise RefusedError("no zero byte")
        raw = self.take(end - self.position)
        self.position += 1
        try:
            return raw.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise RefusedError(str(error)) from None

    def tuple_data(self) -> Plain:
        kinds, values = "", []
        for _ in range(self.count(2)):
            kind = self.one_of("nutb")
            kinds += kind
            values.append(self.take(self.count(4)) if kind in "tb" else None)
        return Plain("TupleData", {"kinds": kinds.encode(), "values": tuple(values)})

    def column(self) -> Plain:
        return Plain(
            "Column",
            {
                "flags": self.unsigned(1),
                "name": self.text(),
                "type_id": self.unsigned(4),
                "type_modifier": self.signed(4),
            },
        )


def decode(
    data: bytes, version: int, *, streaming: bool = False, parallel: bool = False, encoding: str = "utf-8"
) -> Plain:
    """The message; RefusedError if the bytes are none of the protocol version."""
    reader = Reader(data, encoding)
    tag = chr(reader.unsigned(1))
    name, since = SINCE.get(tag, ("", 0))
    if not name or since > version:
        raise RefusedError(f"tag {tag!r}")
    xid = {"xid": reader.unsigned(4)} if streaming and version >= 2 and tag in "MRYIUDT" else {}
    values = {**xid, **_fields(reader, tag, version, parallel)}
    if reader.position != len(data):
        raise RefusedError("bytes are left over")
    return Plain(name, values)


def _fields(reader: Reader, tag: str, version: int, parallel: bool) -> dict[str, Any]:
    if tag in "BCOcbPKrpSEA":
        return _transaction(reader, tag, version, parallel)
    if tag == "M":
        return {
            "flags": reader.unsigned(1),
            "message_lsn": reader.unsigned(8),
            "prefix": reader.text(),
            "content": reader.take(reader.count(4)),
        }
    if tag == "R":
        return {
            "relation_id": reader.unsigned(4),
            "namespace": reader.text(),
            "name": reader.text(),
            "replica_identity": reader.one_of("dnfi"),
            "columns": tuple(reader.column() for _ in range(reader.count(2))),
        }
    if tag == "Y":
        return {"type_id": reader.unsigned(4), "namespace": reader.text(), "name": reader.text()}
    if tag == "I":
        return {"relation_id": reader.unsigned(4), "new": (reader.one_of("N"), reader.tuple_data())[1]}
    if tag == "D":
        return {
            "relation_id": reader.unsigned(4),
            "old_kind": reader.one_of("KO"),
            "old": reader.tuple_data(),
        }
    if tag == "U":
        update: dict[str, Any] = {"relation_id": reader.unsigned(4)}
        kind = reader.one_of("KON")
        if kind != "N":
            update |= {"old_kind": kind, "old": reader.tuple_data()}
            reader.one_of("N")
        return update | {"new": reader.tuple_data()}
    count = reader.count(4)
    options = reader.unsigned(1)
    if 4 * count > len(reader.data):
        raise RefusedError(f"{count} relations")
    return {"options": options, "relation_ids": tuple(reader.unsigned(4) for _ in range(count))}


def _transaction(reader: Reader, tag: str, version: int, parallel: bool) -> dict[str, Any]:
    if tag == "B":
        return {"final_lsn": reader.nonzero(8), "commit_timestamp": reader.signed(8), "xid": reader.unsigned(4)}
    if tag == "O":
        return {"origin_lsn": reader.unsigned(8), "name": reader.text()}
    if tag == "S":
        xid = reader.unsigned(4)
        first = reader.unsigned(1)
        if first > 1:
            raise RefusedError("the first segment is 0 or 1")
        return {"xid": xid, "first_segment": first == 1}
    if tag == "E":
        return {}
    if tag == "A":
        abort = {"xid": reader.unsigned(4), "subxid": reader.unsigned(4)}
        if parallel and version >= 4:
            abort |= {"abort_lsn": reader.unsigned(8), "abort_timestamp": reader.signed(8)}
        return abort
    if tag in "Cc":
        xid_first = {"xid": reader.unsigned(4)} if tag == "c" else {}
        reader.no_flags()
        return xid_first | {
            "commit_lsn": reader.unsigned(8),
            "end_lsn": reader.unsigned(8),
            "commit_timestamp": reader.signed(8),
        }
    if tag != "b":
        reader.no_flags()
    names = {
        "b": ("prepare_lsn", "end_lsn", "prepare_timestamp"),
        "P": ("prepare_lsn", "end_lsn", "prepare_timestamp"),
        "p": ("prepare_lsn", "end_lsn", "prepare_timestamp"),
        "K": ("commit_lsn", "end_lsn", "commit_timestamp"),
        "r": ("prepare_end_lsn", "rollback_end_lsn", "prepare_timestamp", "rollback_timestamp"),
    }[tag]
    values = {name: reader.nonzero(8) if name.endswith("lsn") else reader.signed(8) for name in names}
    return values | {"xid": reader.unsigned(4), "gid": reader.text()}
