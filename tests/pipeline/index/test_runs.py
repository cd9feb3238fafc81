"""Sorted runs, and the hashes that they are sorted by."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from logicalrep.pipeline.index.hashes import Hashes, hashes_of
from logicalrep.pipeline.index.runs import (
    Entries,
    IndexDamagedError,
    InMemory,
    Run,
    merged,
    size_of,
    sorted_by_hash,
    write_run,
)
from logicalrep.pipeline.limits import Limits


def random_entries(chance: random.Random, count: int, hashes: int) -> Entries:
    """Return entries in order, of few hashes all over the range if `hashes` is small."""
    of = [(chance.randrange(hashes) * ((1 << 64) - 1)) // max(hashes - 1, 1) for _ in range(count)]
    places = [chance.getrandbits(64) for _ in range(count)]
    return sorted_by_hash(np.column_stack((np.array(of, np.uint64), np.array(places, np.uint64))))


def plain(entries: Entries) -> list[tuple[int, int]]:
    return sorted((int(hash_), int(place)) for hash_, place in entries)


@pytest.mark.parametrize("seed", range(20))
def test_a_lookup_finds_all_entries_of_the_hashes(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    limits = Limits(block_entries=chance.choice([1, 3, 128]))
    hashes = chance.choice([1, 2, 40, 1 << 62])
    entries = random_entries(chance, chance.choice([0, 1, 5, 400]), hashes)
    cut = chance.randrange(len(entries) + 1)
    run = write_run(tmp_path / "a.run", iter([entries[:cut], entries[cut:]]), limits)
    assert run.size == run.path.stat().st_size == size_of(len(entries), limits.block_entries)
    other_hashes = random_entries(chance, 20, hashes)[:, 0]
    sought = np.unique(
        np.concatenate((chance.choices(entries[:, 0], k=5) if len(entries) else other_hashes, other_hashes))
    )
    expected = [(entry, place) for entry, place in plain(entries) if entry in set(sought.tolist())]
    assert plain(run.find(sought.astype(np.uint64))) == expected
    assert plain(run.find(np.zeros(0, np.uint64))) == []
    least, most = sorted(chance.getrandbits(64) for _ in range(2))
    assert plain(run.between(least, most)) == [entry for entry in plain(entries) if least <= entry[0] <= most]


def test_merged_runs_have_the_wanted_entries_of_all(tmp_path: Path) -> None:
    limits = Limits(read_entries=64, block_entries=16)
    chance = random.Random(1)
    parts = [random_entries(chance, count, 1 << 62) for count in (300, 0, 1, 77)]
    written = [write_run(tmp_path / f"{number}.run", iter([part]), limits) for number, part in enumerate(parts[1:])]
    odd = np.uint64(1)
    parts_merged = [*merged([*written, InMemory(parts[0])], lambda entries: entries[:, 1] & odd == odd, limits)]
    assert len(parts_merged) == 6
    together = np.concatenate(parts_merged)
    assert (np.diff(together[:, 0].astype(object)) >= 0).all()
    assert plain(together) == sorted(entry for part in parts for entry in plain(part) if entry[1] % 2)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["a bit", "an end", "nothing"])
def test_a_damaged_run_is_noticed_wherever_it_is(tmp_path: Path, damage: str) -> None:
    limits = Limits(block_entries=4)
    chance = random.Random(3)
    entries = random_entries(chance, 30, 1 << 62)
    run = write_run(tmp_path / "a.run", iter([entries]), limits)
    whole = run.path.read_bytes()
    for at in range(len(whole)):
        data = bytearray(whole)
        data[at] ^= 1 << chance.randrange(8)
        run.path.write_bytes({"a bit": bytes(data), "an end": whole[:at], "nothing": whole}[damage])
        if damage == "nothing":
            assert plain(Run(run.path, run.count, run.tail_sum, limits).find(entries[:, 0])) == plain(entries)
            return
        with pytest.raises(IndexDamagedError):
            Run(run.path, run.count, run.tail_sum, limits).find(entries[:, 0])


def hashed(keys: pa.Array, salt: int = 17) -> Hashes:
    return hashes_of(keys, salt)


def test_equal_keys_have_equal_hashes_and_others_differ() -> None:
    numbers = [0, 1, -1, 255, 256, 2**31 - 1, -(2**31)]
    of_numbers = hashed(pa.array(numbers, pa.int64())).tolist()
    assert hashed(pa.array(numbers, pa.int32())).tolist() == of_numbers
    assert hashed(pa.array([7, *numbers], pa.int64()).slice(1)).tolist() == of_numbers
    assert hashed(pa.array([3], pa.date32())).tolist() == hashed(pa.array([3])).tolist()
    chance = random.Random(5)
    texts = ["", "a", "aa", "a\0", "\0", "\0\0", "abcdefgh", "abcdefgh\0", "abcdefghi", "x" * 100, "x" * 101]
    texts += [chance.randbytes(chance.randrange(40)).hex() for _ in range(1000)]
    for type_ in (pa.string(), pa.large_string(), pa.large_binary()):
        computed = hashed(pa.array(texts, pa.string()).cast(type_)).tolist()
        assert computed == hashed(pa.array(texts, pa.string())).tolist()
        assert len(set(computed)) == len(set(texts))
        shuffled = chance.sample(range(len(texts)), len(texts))
        taken = pa.array(["before", *(texts[position] for position in shuffled)]).cast(type_).slice(1)
        assert hashed(taken).tolist() == [computed[position] for position in shuffled]
    # They are spread over all numbers, as blocks and slices are found by number.
    many = hashed(pa.array(range(100_000)))
    assert np.bincount((many >> np.uint64(60)).astype(int), minlength=16).min() > 5_500


def test_indexes_of_other_salts_have_other_hashes() -> None:
    for keys in (pa.array(range(1000)), pa.array([f"a key of many words, {number}" for number in range(1000)])):
        sets = [set(hashed(keys, salt).tolist()) for salt in (0, 1 << 40, (1 << 64) - 1)]
        assert [len(set_) for set_ in sets] == [1000, 1000, 1000]
        assert len(set.union(*sets)) == 3000
