"""The native walk over batches: it is the spec's, reads what the walk by `parse` reads, and no memory but its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from logicalrep_protocol.columnar import LocatedBatch, RowDecodeError, Session, decode_batch, locate_batch
from logicalrep_protocol.columnar.plans import PLANS
from logicalrep_runtime.columnar import gathering
from logicalrep_runtime.columnar import locate as locating
from logicalrep_runtime.columnar.located import FULL, REFUSED_BIT, TAKEN, Int64s, Ints, Located, Spans
from logicalrep_runtime.columnar.native_walk import native_walk
from logicalrep_runtime.native import native_module
from tests.arrow.expected import Refused, parsed, session_of
from tests.arrow.mutations import mutated_batches
from tests.native.installed import needs_native
from tests.protocol.captured import read, selected

pytestmark = needs_native
INSERT = bytes.fromhex("49000000074e0002740000000161" + "6e")


def test_the_walks_are_of_the_same_spec() -> None:
    assert [version for version, plan in PLANS.items() if native_walk(plan) is None] == []


def _contents(batch: LocatedBatch) -> dict[str, Any]:
    """Return what a walk located, with values in place of their positions."""
    located = batch.located
    contents: dict[str, Any] = {"tags": located.tags.tolist(), "status": located.status.tolist()}
    for number, column in enumerate(batch.columns):
        bits = np.unpackbits(located.validity.get(number, np.empty(0, np.uint8)), bitorder="little")
        rows = np.flatnonzero(bits).tolist()
        if not rows:
            continue
        if column.is_fixed:
            values = located.fixed[number][rows].tolist()
        elif column.kind == "cells":
            cells = located.cells[number]
            values = cells.offsets.tolist(), bytes(cells.kinds), _values(located, cells.starts, cells.lengths)
        elif column.kind == "items":
            spans = located.spans[number]
            values = spans.rows.tolist(), spans.lengths.tolist()
            for name, field in locating.items(batch.session.plan, number, located).items():
                contents[f"{column.name}.{name}"] = (
                    _values(located, field.starts, field.lengths) if isinstance(field, Spans) else field.tolist()
                )
        else:
            spans = located.spans[number]
            values = spans.rows.tolist(), _values(located, spans.starts, spans.lengths * (column.width or 1))
        contents[column.name] = rows, values
    return contents


def _values(located: Located, starts: Int64s, lengths: Ints) -> list[bytes]:
    return [bytes(located.data[start : start + length]) for start, length in zip(starts, lengths, strict=True)]


def _outcomes(session: Session, messages: list[bytes]) -> Iterator[Any]:
    """Yield what all ways to read a batch give."""
    array = pa.array(messages, pa.binary())
    for large, values in ((False, "binary"), (True, "binary"), (False, "string")):
        if values == "binary" or session.encoding == "utf-8":
            yield decode_batch(array, session, errors="column", large=large, values=values)
    whole = array.filter(pa.array([not isinstance(row, Refused) for row in parsed(messages, session)]))
    for batch in (array, whole):
        try:
            with locate_batch(batch, session) as located:
                yield _contents(located), located.session
        except RowDecodeError as error:
            yield str(error), error.row


def test_it_reads_what_the_walk_by_parse_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    captures = [read(path) for path in selected()[::4]]
    batches = [(session_of(capture), list(capture.messages[:300])) for capture in captures]
    batches += mutated_batches(2_000, 40)
    native = [list(_outcomes(*batch)) for batch in batches]
    monkeypatch.setattr(locating, "native_walk", lambda plan: None)
    monkeypatch.setattr(locating, "native_module", lambda: None)
    for batch, outcomes in zip(batches, native, strict=True):
        assert list(_outcomes(*batch)) == outcomes


@pytest.mark.parametrize("copies", [False, True])
def test_damaged_messages_in_memory_of_their_own(copies: bool) -> None:
    """Each message ends where its memory ends, so that the sanitizers see what is read behind it."""
    refused = 0
    for session, messages in mutated_batches(1_000, 50):
        for data in messages:
            [expected] = parsed([data], session)
            located = locating.locate(
                session,
                np.array(list(data), np.uint8),
                np.array([0, len(data)]),
                stops=False,
                refused=np.empty(0, np.int64),
                copies=copies,
            )
            if session.encoding == "utf-8":
                assert bool(located.status[0] & REFUSED_BIT) == isinstance(expected, Refused)
            refused += isinstance(expected, Refused)
            located.give_back()
    assert refused > 100


def _arguments() -> dict[str, Any]:
    """Return the arguments of a walk over one Insert of version 1, with memory that suffices."""
    plan = PLANS[1]
    columns = np.zeros((len(plan.columns), 4), np.int64)
    columns[:, 0] = 64 + 8 * np.arange(len(plan.columns))
    columns[:, 1] = np.arange(len(plan.columns))
    known_tags = np.zeros(256, np.uint8)
    known_tags[ord("I")] = 1
    spans = tuple(np.empty(0, np.int64) for column in plan.columns if column.has_spans)
    kinds = np.zeros(4, np.uint8)
    cells = (kinds, np.zeros(2, np.int64), np.zeros(4, np.int64), np.zeros(4, np.uint32))
    none = (np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint8))
    return {
        "data": np.frombuffer(INSERT, np.uint8),
        "offsets": np.array([0, len(INSERT)]),
        "row": 0,
        "facts": 0,
        "stops": True,
        "tags": np.zeros(1, np.uint8),
        "status": np.zeros(1, np.uint8),
        "known_tags": known_tags,
        "columns": columns.view([(name, np.int64) for name in ("values", "validity", "count", "size")]).ravel(),
        "block": np.zeros(4096, np.uint8),
        "spans": spans,
        "cells": ((*cells, *none), (*cells, *none)),
    }


def _walk(arguments: dict[str, Any]) -> tuple[int, int, int]:
    native = native_walk(PLANS[1])
    assert native is not None
    return native.walk(*arguments.values())


def test_memory_that_suffices() -> None:
    arguments = _arguments()
    assert _walk(arguments) == (1, 0, TAKEN)
    assert bytes(arguments["tags"]) == b"I"


def test_memory_for_a_part_of_a_text_is_full() -> None:
    arguments = _arguments()
    arguments["data"] = data = np.frombuffer(b"O" + bytes(8) + b"name\0", np.uint8)
    arguments["offsets"] = np.array([0, len(data)])
    arguments["known_tags"][ord("O")] = 1
    arguments["columns"]["count"][next(n for n, column in enumerate(PLANS[1].columns) if column.name == "name")] = 1
    arguments["spans"] = tuple(np.empty(4, np.int64) for _ in arguments["spans"])
    assert _walk(arguments) == (0, 0, FULL)


def _set(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda arguments: arguments.update({name: value})


def _set_column(field: str, value: int) -> Callable[[dict[str, Any]], None]:
    def change(arguments: dict[str, Any]) -> None:
        arguments["columns"][field] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_set("row", 2), id="a row behind the last"),
        pytest.param(_set("row", -1), id="a negative row"),
        pytest.param(_set("offsets", np.empty(0, np.int64)), id="no offsets"),
        pytest.param(_set("offsets", np.zeros(2, np.int32)), id="short offsets"),
        pytest.param(_set("tags", np.empty(0, np.uint8)), id="no tags"),
        pytest.param(_set("status", np.empty(0, np.uint8)), id="no status"),
        pytest.param(_set("known_tags", np.zeros(255, np.uint8)), id="too few known tags"),
        pytest.param(_set("block", np.zeros(16, np.uint8)), id="a small block"),
        pytest.param(_set("spans", ()), id="no spans"),
        pytest.param(_set("cells", ()), id="no cells"),
        pytest.param(_set_column("values", -1), id="values before the block"),
        pytest.param(_set_column("values", 1 << 62), id="values behind the block"),
        pytest.param(_set_column("validity", -1), id="validity before the block"),
        pytest.param(_set_column("validity", 4096), id="validity behind the block"),
        pytest.param(_set_column("count", 5), id="more cells than memory"),
        pytest.param(_set_column("count", -1), id="a negative count"),
        pytest.param(_set_column("size", -1), id="a negative size"),
        pytest.param(_set_column("size", (1 << 63) - 1), id="the largest size"),
    ],
)
def test_memory_that_does_not_fit_is_refused(change: Callable[[dict[str, Any]], None]) -> None:
    arguments = _arguments()
    change(arguments)
    with pytest.raises(ValueError, match=r"do not fit|has items of|is too small|are too short"):
        _walk(arguments)


def test_lists_elsewhere_are_refused() -> None:
    native = native_walk(PLANS[1])
    assert native is not None
    number = next(number for number, column in enumerate(PLANS[1].columns) if column.kind == "items")
    fields = tuple(
        np.zeros(4, f"i{field.width}") if field.is_fixed else np.zeros(12, np.int64)
        for field in PLANS[1].columns[number].fields
    )
    data = np.frombuffer(b"\x01id\0" + bytes(8), np.uint8)
    assert native.items(number, data, np.array([0, 0, 1]), fields) == (0, 2, 0, 0)
    for triple in ([0, -1, 1], [0, 1 << 40, 1], [0, 0, 2], [0, 4, 1]):
        with pytest.raises(ValueError, match="not those of a walk"):
            native.items(number, data, np.array(triple), fields)
    with pytest.raises(ValueError, match="no such items"):
        native.items(0, data, np.array([0, 0, 1]), fields)


@pytest.mark.parametrize("module", [native_module(), gathering], ids=["native", "Python"])
def test_positions_outside_of_the_data_are_refused(module: Any) -> None:
    data, room = np.arange(8, dtype=np.uint8), np.zeros(4, np.uint8)
    offsets = np.zeros(2, np.int32)
    module.gather(data, np.array([4]), np.array([3], np.uint32), offsets, room)
    assert (offsets.tolist(), room.tolist()) == ([0, 3], [4, 5, 6, 0])
    module.gather(data, np.array([6, 2]), np.array([2, 1], np.uint32), more_offsets := np.zeros(3, np.int64), room)
    assert (more_offsets.tolist(), room.tolist()) == ([0, 2, 3], [6, 7, 2, 0])
    module.gather_texts(data, np.array([0, 5, 2]), offsets, room)
    assert (offsets.tolist(), room[:2].tolist()) == ([0, 2], [5, 6])
    module.spread_lists(np.array([0, 5, 2]), offsets)
    assert offsets.tolist() == [0, 2]
    for start, length in ((-1, 1), (7, 2), (9, 0), (0, 5), (1 << 62, 1)):
        with pytest.raises(ValueError, match="outside of the data"):
            module.gather(data, np.array([start]), np.array([length], np.uint32), offsets, room)
        with pytest.raises(ValueError, match="outside of the data"):
            module.gather_texts(data, np.array([0, start, length]), offsets, room)
    for spans in ([2, 0, 1], [0, 0, -1]):
        with pytest.raises(ValueError, match="outside of the data"):
            module.spread_lists(np.array(spans), offsets)
