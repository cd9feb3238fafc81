"""Copied rows in the stored table's columns: by compiled loops, and value by value, with the same result."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from logicalrep.observe.events import RunEvent, StepStarted
from logicalrep.observe.observer import Observer, Observers
from logicalrep.pipeline.config.mask_key import MaskKey
from logicalrep.pipeline.engines.engine import SequentialEngine
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.load import copying, snapshot_copy
from logicalrep.pipeline.load.copying import typed, typed_without_loops
from logicalrep.pipeline.run.run import replicate_with
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.values import ColumnValueError
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import TABLES, settings
from tests.pipeline.typed_changes import TYPES, table_spec
from tests.postgres.servers import Database

_ESCAPES = {ord(char): f"\\{letter}" for char, letter in zip("\\\b\f\n\r\t\v", "\\bfnrtv", strict=True)}

Read = Callable[[Iterator[bytes], TableSpec, MaskKey | None], Iterator[pa.RecordBatch]]


def line(values: Sequence[str | None]) -> bytes:
    return ("\t".join("\\N" if value is None else value.translate(_ESCAPES) for value in values) + "\n").encode()


def result(read: Read, data: Sequence[bytes], table: TableSpec) -> str:
    """Return the rows, or the error, in words: no NaN equals another one, and Python's dates are too few."""
    try:
        rows = pa.Table.from_batches(read(iter(data), table, None), table.schema)
    except ColumnValueError as error:
        return str(error)
    texts = [column.combine_chunks().to_string(window=1000, container_window=1000) for column in rows.columns]
    return f"{rows.schema} {texts}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
def test_values_of_every_type_are_the_same_without_loops(kind: str) -> None:
    oid, modifier, texts = TYPES[kind]
    table = table_spec({"id": (23, -1), "v": (oid, modifier)}, ("id",))
    lines = [line([str(number), text]) for number, text in enumerate([None, *texts])]
    for data in (*([copy_line] for copy_line in lines), lines, []):
        assert result(typed_without_loops, data, table) == result(typed, data, table)


def test_escaped_characters_are_the_same_without_loops() -> None:
    table = table_spec({"id": (23, -1), "v": (25, -1), "w": (25, -1)}, ("id",))
    texts = ["".join(chars) for chars in itertools.product("\\\t\n\rN.ä\b", repeat=3)]
    lines = [line([str(number), text, None if number % 3 else text]) for number, text in enumerate(texts)]
    # The server does not escape these, and a reader takes them for themselves.
    lines.append(b"-1\t\\q\\.\t\\x41\n")
    assert result(typed_without_loops, lines, table) == result(typed, lines, table)
    (batch,) = typed_without_loops(iter(lines), table, None)
    assert batch.column("v").to_pylist() == [*texts, "q."]


@pytest.mark.parametrize("data", [b"1\t2", b"1\n", b"1\t2\t3\n", b"\n"])
def test_damaged_rows_are_refused(data: bytes) -> None:
    table = table_spec({"id": (23, -1), "v": (25, -1)}, ("id",))
    for read in (typed, typed_without_loops):
        with pytest.raises(ValueError, match="did not send rows of the columns"):
            list(read(iter([data]), table, None))


@pytest.mark.parametrize("is_compiled", [False, True])
def test_small_tables_are_loaded_without_loops_until_these_are_compiled(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_compiled: bool
) -> None:
    used = []

    def read(name: str, own: Read) -> Read:
        return lambda *arguments: used.append(name) or own(*arguments)  # type: ignore[func-returns-value]

    monkeypatch.setattr(copying, "typed", read("loops", typed))
    monkeypatch.setattr(copying, "typed_without_loops", read("values", typed_without_loops))
    monkeypatch.setattr(copying, "are_loops_compiled", lambda: is_compiled)
    replicate_with(settings(shop, tmp_path, once=True), Observers(), engine=SequentialEngine())
    assert find_differences(shop.dsn, str(tmp_path), TABLES) == {}
    assert set(used) == {"loops" if is_compiled else "values"}


def test_a_line_says_once_that_larger_tables_wait_for_loops(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Heard(Observer):
        def on_event(self, event: RunEvent) -> None:
            match event:
                case StepStarted(text):
                    heard.append(text)

    heard: list[str] = []
    for is_compiled in (False, True):
        monkeypatch.setattr(snapshot_copy, "are_loops_compiled", lambda value=is_compiled: value)
        lake = tmp_path / str(is_compiled)
        replicate_with(
            settings(shop, lake, once=True), Heard(), engine=SequentialEngine(), limits=Limits(uncompiled_bytes=0)
        )
        assert len([text for text in heard if "compiling loops" in text]) == 1


_MODULE = """
from logicalrep_runtime.columnar import kernel_cache
from logicalrep_runtime.columnar.compiling import announcing_compilation
from logicalrep_runtime.columnar.memory import compiled

@compiled
def one(number): return number + 1

@compiled
def two(number): return number + 2

was_compiled = kernel_cache.is_compiled(one)
with announcing_compilation(print):
    assert (one(1), two(1)) == (2, 3)
print(was_compiled, kernel_cache.is_compiled(one))
"""


@pytest.mark.slow
def test_observers_hear_once_of_compiled_loops_and_never_of_cached_loops(tmp_path: Path) -> None:
    (tmp_path / "of_loops.py").write_text(_MODULE)
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "loops")}
    first, second = (
        subprocess.run(
            [sys.executable, "-c", "import of_loops"], capture_output=True, text=True, check=True, env=environment
        ).stdout.splitlines()
        for _ in range(2)
    )
    assert first == ["compiling loops: cached for later runs (about 20 seconds of one core)", "False True"]
    assert second == ["True True"]


_MEANWHILE = """
import threading
from logicalrep_runtime.columnar.compiling import acting_meanwhile
from logicalrep_runtime.columnar.memory import compiled

@compiled
def inner(number): return number + 1

@compiled
def outer(number): return inner(number) + 1

@compiled
def wrong(number): return number.nothing

def run():
    threads = set()
    with acting_meanwhile(lambda: threads.add(threading.current_thread())):
        assert outer(1) == 3
        try:
            wrong(1)
        except Exception as error:
            print(type(error).__name__)
    assert threads <= {threading.main_thread()}
    assert outer(2) == 4
    print(bool(threads))
"""


@pytest.mark.slow
def test_a_thread_works_while_its_loops_are_compiled(tmp_path: Path) -> None:
    (tmp_path / "of_loops.py").write_text(_MEANWHILE)
    program = "from logicalrep_runtime.columnar import compiling; compiling.ACTION_INTERVAL = 0.001; import of_loops; of_loops.run()"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "loops")},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["TypingError", "True"]
