"""Damage at random: bytes of files, and values of JSON; and the rows of tables that are read afterwards."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from logicalrep.pipeline.formats.stored_table import StoredTable
from logicalrep.pipeline.storage.data_files import read_rows

_Mutation = Callable[[bytes, random.Random], bytes]
_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1 << 62, 1 << 70, 10**400, 1.5, float("nan"), float("-inf"), "", "x", "..", "/etc", "\0", "\ud800", [], [[]],
    {}, {"": None}, "9" * 5000, "0/0", "2026-01-01",
)  # fmt: skip


def changed_json(value: Any, chance: random.Random) -> Any:
    """Return a value of JSON with something else in one place."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        name = chance.choice(sorted(value))
        remaining = {key: content for key, content in value.items() if key != name}
        return remaining if chance.random() < 0.15 else value | {name: changed_json(value[name], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        index = chance.randrange(len(value))
        return [*value[:index], changed_json(value[index], chance), *value[index + 1 :]]
    return chance.choice(_VALUES)


def ids_of(stored: StoredTable) -> Counter[object]:
    ids: Counter[object] = Counter()
    for file in stored.files.values():
        ids.update(read_rows(stored.storage, stored.folder, file, stored.table.stored, ["id"])["id"].to_pylist())
    return ids


def _flip(data: bytes, chance: random.Random) -> bytes:
    position = chance.randrange(len(data))
    return data[:position] + bytes([data[position] ^ (1 << chance.randrange(8))]) + data[position + 1 :]


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def _overwrite(data: bytes, chance: random.Random) -> bytes:
    position = chance.randrange(len(data))
    return data[:position] + chance.randbytes(8) + data[position + 8 :]


def _repeat(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[chance.randrange(len(data)) :]


def _extend(data: bytes, chance: random.Random) -> bytes:
    position = chance.randrange(len(data))
    return data[:position] + chance.choice((b"\xff", b"\x00")) * 16 + data[position:]


MUTATIONS: list[_Mutation] = [_flip, cut, _overwrite, _repeat, _extend]
