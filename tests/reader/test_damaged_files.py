"""Files of a destination that are damaged at random, or made up: readers get rows, or one error with a code."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import logicalrep
from logicalrep.pipeline.schema.table_formats import FormatName
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.errors import LogicalRepError
from tests.pipeline.formats.damaging import changed_json
from tests.pipeline.formats.iceberg.tables import delete, insert
from tests.pipeline.stored import MARKS_IN_SMALL_FILES, new_stored
from tests.reader.destinations import write_identity, write_states


def changed_lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines()
    index = chance.randrange(len(lines))
    try:
        value = json.loads(lines[index])
    except ValueError:
        return b"7" * chance.choice([1, 30, 5000])
    lines[index] = json.dumps(changed_json(value, chance)).encode()
    return b"\n".join(lines)


def changed_bytes(data: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(data)
    place = chance.randrange(max(len(damaged), 1))
    match chance.randrange(4):
        case 0:
            del damaged[place:]
        case 1:
            damaged[place : place + 1] = bytes([chance.randrange(256)])
        case 2:
            damaged[place : place + 4] = bytes(chance.choice((0, 1, 127, 128, 255)) for _ in range(4))
        case _:
            damaged[:] = chance.choice((b"", b"\0", b"[" * 100_000, b'{"a":' * 100_000, b"PAR1", b"Obj\1", damaged * 2))
    return bytes(damaged)


def write_destination(folder: Path, table_format: FormatName) -> None:
    storage = Storage(str(folder), limits=MARKS_IN_SMALL_FILES)
    stored = new_stored(storage, ("id",), mode="merge-on-read", table_format=table_format)
    insert(stored, 1000, range(3000))
    delete(stored, 1001, range(0, 3000, 7))
    insert(stored, 1002, range(3000, 3100))
    write_identity(storage, table_format)
    write_states(storage, stored.version)


READERS: tuple[Callable[[Path], object], ...] = (
    lambda folder: logicalrep.read(folder, "public.t").arrow(),
    lambda folder: logicalrep.read(folder, "public.t").select(["b"], where=[("id", ">", 2990)]).arrow(),
    lambda folder: logicalrep.at(folder, datetime.now(UTC))["public.t"].arrow(),
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(2, 30))])
@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_what_is_damaged_is_an_error_with_a_code(tmp_path: Path, table_format: FormatName, seed: int) -> None:
    lake = tmp_path / "lake"
    write_destination(lake, table_format)
    chance = random.Random(seed)
    paths = sorted(path for path in lake.rglob("*") if path.is_file())
    whole = READERS[0](lake)
    codes: list[str] = []
    for _ in range(60):
        path = chance.choice(paths)
        data = path.read_bytes()
        is_text = path.suffix == ".json" and chance.random() < 0.8
        path.write_bytes(changed_lines(data, chance) if is_text else changed_bytes(data, chance))
        kept = tmp_path / "last"
        shutil.copyfile(path, kept)
        try:
            chance.choice(READERS)(lake)
        except LogicalRepError as error:
            codes.append(error.code)
        except Exception as error:
            raise AssertionError(f"{path}, as it is in {kept}: {error!r}") from error
        path.write_bytes(data)
    assert len(codes) > 5
    assert "LOGICALREP" not in codes
    assert READERS[0](lake) == whole
