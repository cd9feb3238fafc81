"""The loops of `logicalrep-native` give what the loops in Python give, and use no memory but their arguments'."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

# The modules enter their loops.
from logicalrep.arrow.loops import finding, frames, maps, names, transactions  # noqa: F401
from logicalrep.arrow.loops.choosing import PLAIN
from logicalrep.arrow.table_numbers import TableNumbers
from logicalrep.transactions.frames import LONGEST_MESSAGE
from logicalrep_runtime.native import native_module
from tests.native.installed import needs_native

pytestmark = needs_native
Random = np.random.Generator
Find = Callable[[str], Callable[..., Any]]
SIZES = (0, 1, 2, 7, 60)


def _zeros(*counts_and_types: tuple[int, Any]) -> Any:
    return tuple(np.zeros(count, type_) for count, type_ in counts_and_types)


def _bits(random: Random, count: int) -> NDArray[np.uint8]:
    return random.integers(0, 256, (count + 7) // 8, np.uint8)


def _some(random: Random, count: int) -> NDArray[np.int64]:
    """Return some of so many indices, in order."""
    return np.flatnonzero(random.random(count) < 0.8)


def _ends(sizes: list[int], type_: Any = np.int32) -> NDArray[Any]:
    return np.array([0, *accumulate(sizes)], type_)


def group_rows(find: Find, random: Random, size: int) -> Any:
    oids = random.integers(0, max(1, size // 3), size).astype(np.uint32) * np.uint32(0x01000193)
    rows = _some(random, size)
    grouped = np.zeros(len(rows), np.int64)
    return find("group_rows")(rows, oids, grouped), grouped.tolist()


def _group_many(tables: int) -> Callable[[Find, Random, int], Any]:
    def group(find: Find, random: Random, size: int) -> Any:
        oids = np.concatenate([np.arange(tables), random.integers(0, tables, 50)]).astype(np.uint32)
        rows, grouped = np.arange(len(oids)), np.zeros(len(oids), np.int64)
        result = find("group_rows")(rows, oids, grouped)
        assert len(result) == tables
        return result, grouped.tolist()

    return group


def find_rows(find: Find, random: Random, size: int) -> Any:
    width = int(random.integers(0, 5))
    widths = np.full(size, width)
    widths[random.random(size) < random.choice([0, 0.1])] += 1
    offsets = _ends(widths.tolist(), np.int64)
    rows = _some(random, size)
    kinds = random.choice(np.frombuffer(b"ntu", np.uint8), offsets[-1])
    key_kinds = random.choice(np.frombuffer(b"KO", np.uint8), random.choice([0, size]))
    present, whole = (_zeros((len(rows), np.int64), (len(rows), np.int64)) for _ in range(2))
    in_key = random.integers(0, 2, width, np.uint8)
    count, whole_count, wrong, has_more = find("find_rows")(
        rows, offsets, _bits(random, size), kinds, in_key, key_kinds, present, whole
    )
    return [
        *((wrong, has_more), *(rows[:count].tolist() for rows in present)),
        *(rows[:whole_count].tolist() for rows in whole),
    ]


def follow(find: Find, random: Random, size: int) -> Any:
    transactions = [b"B", *(random.choice([b"I", b"U", b"D", b"T", b"M", b"R", b"O"], 3)), b"C", b"M", b"A"]
    tags = np.frombuffer(b"".join(transactions * size), np.uint8).copy()
    tags[random.random(len(tags)) < random.choice([0, 0.05])] = ord(random.choice(list("BCA")))
    starts = int(random.integers(0, 5))
    is_open = bool(starts % 5 or (len(tags) and random.random() < 0.1))
    tags = tags[starts:].copy()
    truncated = random.integers(1, 5, np.count_nonzero(tags == ord("T")))
    numbers, ordinals = _zeros((len(tags), np.int64), (len(tags), np.int64))
    result = find("follow")(tags, is_open, 7, truncated, numbers, ordinals)
    return result, numbers.tolist(), ordinals.tolist()


def number_tables(find: Find, random: Random, size: int) -> Any:
    numbers = TableNumbers()
    for number in range(size):
        numbers[16_384 + 7 * number] = number
    count = 2 * size
    tags = random.choice(np.frombuffer(b"IUDBT", np.uint8), count)
    most = 16_384 + 7 * max(1, size)
    oids = random.choice(np.arange(16_384, most, random.choice([1, 7])), count).astype(np.uint32)
    tables = np.full(count, -1, np.int32)
    first = int(random.integers(0, count + 1))
    result = find("number_tables")(tags, oids, first, count, numbers.buckets.copy(), tables)
    return result, tables.tolist()


def fill_rows(find: Find, random: Random, size: int) -> Any:
    rows, tables, runs = _some(random, size), 5, 3
    messages = transactions.Messages(
        random.choice(np.frombuffer(b"IUD", np.uint8), size),
        random.integers(-9, 9, size),
        random.integers(0, tables, size).astype(np.int32),
        random.integers(0, runs, size),
        random.integers(0, 9, size),
    )
    of_tables = transactions.TableArrays(*random.integers(0, 99, (3, tables)))
    of_runs = transactions.Transactions(*random.integers(-99, 99, (3, runs)))
    columns = transactions.FeedColumns(*(np.zeros(len(rows), type_) for type_ in [np.int32] * 2 + [np.int64] * 6))
    totals = find("fill_rows")(rows, messages, of_tables, of_runs, columns)
    return totals, [column.tolist() for column in columns]


def _names(random: Random, count: int) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    ends = _ends(random.integers(0, 50, count).tolist())
    return random.integers(97, 123, ends[-1], np.uint8), ends


def find_keys(find: Find, random: Random, size: int) -> Any:
    key_ends = _ends(random.integers(0, 3, 10).tolist(), np.int64)
    tables = random.integers(0, 10, size).astype(np.int32)
    columns, ends = _zeros((2 * size, np.int32), (size + 1, np.int32))
    key_columns = random.integers(0, 99, key_ends[-1]).astype(np.int32)
    count = find("find_keys")(tables, key_columns, key_ends, columns, ends)
    return columns[:count].tolist(), ends.tolist()


def copy_names(find: Find, random: Random, size: int) -> Any:
    characters, name_ends = _names(random, 10)
    numbers = random.integers(0, 10, size).astype(np.int32)
    if random.random() < 0.5:
        # As of whole rows.
        numbers = np.resize(np.arange(3, 9), size).astype(np.int32)
    ends = np.zeros(size + 1, np.int32)
    copies = np.zeros(find("find_names")(numbers, name_ends, ends), np.uint8)
    find("copy_names")(numbers, characters, name_ends, copies, ends)
    return copies.tobytes(), ends.tolist()


_TEXTS = ["", "a", "plain", "é", "naïve", "日本", "😀", "\0", "a longer text with more than a few bytes"]


def are_utf8(find: Find, random: Random, size: int) -> Any:
    texts = [text.encode() for text in random.choice(_TEXTS, size * random.integers(1, 30))]
    ends = _ends([len(text) for text in texts])
    data = np.frombuffer(b"".join(texts), np.uint8).copy()
    if len(data) and random.random() < 0.7:
        data[random.integers(0, len(data))] = random.choice([0x80, 0xBF, 0xC0, 0xE0, 0xED, 0xF4, 0xF5, 0xFF, 0x41])
    if len(ends) > 2 and random.random() < 0.5:
        ends[random.integers(1, len(ends) - 1)] += 1
        ends.sort()
        ends[-1] = len(data)
    return find("are_utf8")(data, ends)


def copy_frames(find: Find, random: Random, size: int) -> Any:
    header = int(random.choice([12, 16, 25]))
    lengths = random.integers(0, 60, size).tolist()
    if size and random.random() < 0.2:
        lengths[-1] = int(random.choice([-1, LONGEST_MESSAGE + 1, LONGEST_MESSAGE, 1 << 20]))
    data = b"".join(
        bytes(header - 12)
        + random.bytes(8)
        + length.to_bytes(4, "big", signed=True)
        + random.bytes(max(0, min(length, 99)))
        for length in lengths
    )
    source = np.frombuffer(data[: random.integers(0, len(data) + 1)] if random.random() < 0.7 else data, np.uint8)
    most = len(source) // header
    lsns, offsets, tags, target = _zeros(
        (most, np.int64), (most + 1, np.int32), (most, np.uint8), (len(source), np.uint8)
    )
    count, taken = find("copy_frames")(source, header, lsns, offsets, tags, target)
    end = int(offsets[count])
    return taken, lsns[:count].tolist(), offsets[: count + 1].tolist(), tags[:count].tolist(), target[:end].tobytes()


def cut_out(find: Find, random: Random, size: int) -> Any:
    start, length = (int(number) for number in random.integers(0, 30, 2))
    begins = np.int32(random.integers(0, 9)) + _ends((start + length + random.integers(0, 50, size)).tolist())
    source = random.integers(0, 256, begins[-1] + random.integers(0, 40), np.uint8)
    offsets = np.zeros(size + 1, np.int32)
    target = np.zeros(begins[-1] - begins[0] - length * size, np.uint8)
    find("cut_out")(source, begins, start, length, offsets, target)
    return offsets.tolist(), target.tobytes()


_FIELDS = [
    b"",
    b"value",
    rb"\N",
    b"N",
    rb"a\tb",
    rb"\\",
    rb"\\N",
    rb"\N\N",
    b"x" * 40,
    rb"ends with\\",
    b"odd\\",
    rb"\q",
]


def insert_messages(find: Find, random: Random, size: int) -> Any:
    columns = int(random.integers(0, 4))
    lines = [b"\t".join(random.choice(np.array(_FIELDS, object), columns)) for _ in range(size)]
    if size and random.random() < 0.2:
        lines[random.integers(0, size)] += b"\tmore"
    source = np.frombuffer(b"".join(line + b"\n" for line in lines), np.uint8)
    beginning = np.frombuffer(b"I beginning", np.uint8)
    meanings = np.arange(256, dtype=np.uint8)
    meanings[ord("t")] = ord("\t")
    offsets, target = _zeros(
        (size + 1, np.int64), (len(source) + size * (len(beginning) + 4 * max(columns, 1)), np.uint8)
    )
    count = find("insert_messages")(source, beginning, columns, meanings, offsets, target)
    return None if count < 0 else (offsets.tolist(), target[: offsets[-1]].tobytes())


def _side(random: Random, widths: NDArray[np.int64], data: NDArray[np.uint8]) -> maps.Side:
    offsets = _ends(widths.tolist(), np.int64)
    lengths = random.integers(0, 45, offsets[-1]).astype(np.uint32)
    kinds = random.choice(np.frombuffer(b"tttttnub", np.uint8), offsets[-1])
    return maps.Side(
        offsets, _bits(random, len(widths)), kinds, random.integers(0, len(data) - 45, offsets[-1]), lengths
    )


def fill_maps(find: Find, random: Random, size: int) -> Any:
    widths = random.integers(0, 6, 4)
    characters, name_ends = _names(random, int(widths.sum()))
    columns = maps.Columns(
        np.cumsum(widths) - widths, widths, random.integers(0, 2, widths.sum(), np.uint8), characters, name_ends
    )
    table_of, data = random.integers(0, 4, size), random.integers(0, 256, 99, np.uint8)
    sent = widths[table_of]
    sent[random.random(size) < random.choice([0, 0, 0.05])] += 1
    none = maps.Side(*(np.empty(0, type_) for type_ in (np.int64, np.uint8, np.uint8, np.int64, np.uint32)))
    side, other = _side(random, sent, data), _side(random, sent, data)
    are_new, has_old = bool(random.integers(0, 2)), bool(random.integers(0, 2))
    old_kinds = random.choice(np.frombuffer(b"KO\0", np.uint8), size if has_old else 0)
    rows = _some(random, size)
    count, most = len(rows), 5 * len(rows)
    to = maps.Entries(
        names=np.zeros(50 * most, np.uint8),
        name_ends=np.zeros(most + 1, np.int32),
        values=np.zeros(45 * most, np.uint8),
        value_ends=np.zeros(most + 1, np.int32),
        value_bits=np.full((most + 7) // 8, 0xFF, np.uint8),
        binary_entries=np.zeros(most, np.int32),
        binary_columns=np.zeros(most, np.int32),
        ends=np.zeros(count + 1, np.int32),
        row_bits=np.full((count + 7) // 8, 0xFF, np.uint8),
        unsent=np.zeros(most, np.int32),
        unsent_ends=np.zeros(count + 1, np.int32),
    )
    filled = find("fill_maps")(
        rows,
        table_of[rows].astype(np.int32),
        columns,
        side if has_old or are_new else none,
        other if are_new and has_old else none,
        are_new,
        old_kinds,
        data,
        to,
    )
    sizes = maps.Sizes(*filled)
    if sizes.wrong >= 0:
        return sizes.wrong
    # What lies behind the copied bytes may be anything.
    to = to._replace(names=to.names[: sizes.names], values=to.values[: sizes.values])
    return sizes, [array.tolist() for array in to]


_LOOPS = [
    *(group_rows, find_rows, follow, number_tables, fill_rows, find_keys, copy_names, are_utf8, copy_frames, cut_out),
    *(insert_messages, fill_maps),
]
_MANY = [pytest.param(_group_many(count), id=f"{count} tables") for count in (2048, 2049, 40_000)]


def _native(name: str) -> Callable[..., Any]:
    return getattr(native_module(), name)


@pytest.mark.parametrize("loop", [*_LOOPS, *_MANY])
def test_the_native_loop_gives_what_the_plain_loop_gives(loop: Callable[[Find, Random, int], Any]) -> None:
    results = set()
    for seed in range(150 if loop in _LOOPS else 1):
        size = SIZES[seed % len(SIZES)]
        native = loop(_native, np.random.default_rng(seed), size)
        assert native == loop(PLAIN.__getitem__, np.random.default_rng(seed), size), seed
        results.add(repr(native))
    assert len(results) > (20 if loop in _LOOPS and loop is not are_utf8 else 0)


def test_texts_of_all_first_bytes() -> None:
    native = _native("are_utf8")
    for tail in (b"", b"\x80", b"\xbf\x80"):
        ends = np.array([0, 2 + len(tail)], np.int32)
        for first in range(0x7F, 0x100):
            for second in range(0x7F, 0x100):
                data = bytes([first, second]) + tail
                assert native(data, ends) == PLAIN["are_utf8"](np.frombuffer(data, np.uint8), ends), data


class _CalledError(Exception):
    pass


def _damaged(random: Random, argument: Any) -> Any:
    """Return an argument with less memory, or with wrong numbers."""
    if isinstance(argument, tuple):
        items = list(argument)
        index = random.integers(0, len(items))
        items[index] = _damaged(random, items[index])
        return tuple(items)
    if not isinstance(argument, np.ndarray):
        return int(random.choice([-(1 << 63), -1, 0, 1, 5, 300, (1 << 31) - 1, (1 << 63) - 1]))
    if len(argument) and random.random() < 0.3:
        return argument[: random.integers(0, len(argument))].copy()
    changed = argument.copy()
    if len(changed):
        limits = np.iinfo(changed.dtype)
        number = random.choice([limits.min, limits.max, 0, 1, min(len(argument), limits.max), 100, limits.max - 40])
        changed[random.integers(0, len(changed), random.integers(1, 4))] = number
    return changed


@pytest.mark.parametrize("loop", _LOOPS)
def test_damaged_arguments_are_refused_or_used_within_their_memory(loop: Callable[[Find, Random, int], Any]) -> None:
    refused = 0

    def find(name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> None:
            nonlocal refused
            index = random.integers(0, len(arguments))
            damaged = _damaged(random, arguments[index])
            try:
                _native(name)(*arguments[:index], damaged, *arguments[index + 1 :])
            except ValueError:
                refused += 1
            raise _CalledError

        return call

    for seed in range(400):
        random = np.random.default_rng(seed)
        with suppress(_CalledError):
            loop(find, random, SIZES[seed % len(SIZES)])
    assert refused > 20


def test_arguments_of_another_form_are_refused() -> None:
    module, bytes_ = native_module(), np.zeros(4, np.uint8)
    frozen = np.frombuffer(b"1234", np.uint8)
    ends = np.zeros(3, np.int32)
    for arguments in ((), (bytes_,), (bytes_, ends, ends)):
        with pytest.raises(TypeError, match="another number of arguments"):
            module.are_utf8(*arguments)
    with pytest.raises(ValueError, match="items of 8 bytes instead of 4"):
        module.are_utf8(bytes_, np.zeros(2, np.int64))
    with pytest.raises(ValueError, match="read-only"):
        module.cut_out(bytes_, ends, 0, 0, ends, frozen)
    rows, none = np.zeros(0, np.int64), np.zeros(0, np.uint8)
    for present in ((rows,), (rows, rows, rows)):
        with pytest.raises(TypeError, match="a tuple has another number"):
            module.find_rows(rows, rows, none, none, none, none, present, (rows, rows))
    with pytest.raises(TypeError, match="no tuple"):
        module.find_rows(rows, rows, none, none, none, none, rows, (rows, rows))
    with pytest.raises(OverflowError):
        module.follow(none, False, 1 << 63, rows, rows, rows)
