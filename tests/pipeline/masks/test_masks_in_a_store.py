"""Masked columns of tables with marked rows in an object store whose answers are late, failures or lost."""

from __future__ import annotations

import hmac
import io
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from logicalrep.pipeline.limits import Limits

pytest.importorskip("moto")

import logicalrep
from logicalrep.pipeline.config.reading import read_config
from logicalrep.pipeline.formats.opening import table_format
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.verify.verifying import verify
from tests.pipeline.index.small_indexes import index_small_tables
from tests.pipeline.replicating import replicate_once
from tests.pipeline.storage.stores import Store, start_object_store
from tests.pipeline.storage.troubles import Failures
from tests.postgres.servers import Database

pytestmark = pytest.mark.thorough

KEY = "a key for tests, and for them alone"
URI = "s3://lake/shop"
BIG = "(SELECT string_agg('sesame' || md5(i::text), '') FROM generate_series(1, 300) AS i)"
CHANGES = [
    "UPDATE users SET city = 'other ' || {n} WHERE id % 50 = {n}",
    "UPDATE users SET email = 'sesame again' || {n}, phone = '2026-01-01' WHERE id % 50 = {n}",
    "UPDATE users SET id = id + 100000 WHERE id % 50 = {n} AND id < 100000",
    "DELETE FROM users WHERE id % 50 = {n}",
    "UPDATE users SET big = NULL, email = NULL WHERE id % 50 = {n}",
]
INSERT = (
    "INSERT INTO users SELECT 200000 + {round} * 100 + i, 'sesame' || i, NULL, 'sesame', 'sesame', 'new' "
    "FROM generate_series(1, 60) AS i"
)
OTHERS = {
    2: "ALTER TABLE users ADD COLUMN more text DEFAULT 'sesame no secret'",
    3: "ALTER TABLE users RENAME COLUMN city TO town",
    6: "TRUNCATE users",
}


@pytest.fixture
def store() -> Iterator[Store]:
    with start_object_store() as store:
        yield store


def _hashed(text: str | None) -> str | None:
    return None if text is None else hmac.digest(KEY.encode(), text.encode(), "sha256").hex()


def _contents(store: Store) -> Iterator[tuple[str, str]]:
    """Yield each object's key, and what is in it as text."""
    for key in store.keys():  # noqa: SIM118
        data = store.client.get_object(Bucket="lake", Key=key)["Body"].read()
        yield (
            key,
            str(pq.read_table(io.BytesIO(data)).to_pylist()) if key.endswith(".parquet") else data.decode("latin-1"),
        )


@pytest.mark.parametrize("index_size", [None, 100.0], ids=["", "with an index"])
def test_no_value_is_in_clear_and_all_others_are_right(
    db18: Database, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, index_size: float | None
) -> None:
    monkeypatch.setenv("LOGICALREP_MASK_KEY", KEY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    limits = index_small_tables(Limits(small_file_bytes=1, marked_share=1, row_read_bytes=1))
    # Parts of small files are read too.
    masks = {"masked": {"email": "hashed", "phone": "nulled", "big": "hashed"}, "left_out": ["secret"]}
    options: dict[str, Any] = {
        "config": read_config({"tables": {"users": masks}}, TableSettings(write_mode="merge-on-read", history=True)),
        "index_size": index_size,
        "storage_options": store.options,
    }
    db18.execute(
        "CREATE TABLE users (id int PRIMARY KEY, email text, phone date, secret text, big text, city text)",
        "ALTER TABLE users ALTER big SET STORAGE EXTERNAL",
        f"INSERT INTO users SELECT i, 'sesame' || i, '2020-01-01', 'sesame', {BIG}, 'city' "
        "FROM generate_series(1, 500) AS i",
    )
    replicate_once(db18, URI, limits=limits, **options)
    store.trouble = Failures(1, ["late", "fail", "lose"], 0.05)
    chance, marked = random.Random(1), 0
    for number in range(9):
        for statement in (INSERT, *chance.sample(CHANGES, 2)):
            text = statement.format(n=chance.randrange(50), round=number)
            db18.execute(text.replace("city", "town") if number > 3 else text)
        if number in OTHERS:
            db18.execute(OTHERS[number])
        replicate_once(db18, URI, limits=limits, **options)
        stored = table_format(Storage(URI, store.options)).open("public/users")
        assert stored is not None
        marked += any(file.vector is not None for file in stored.files.values())
    store.trouble = lambda method, path: None
    assert marked > 3
    names = ("id", "email", "phone", "big", "town", "more")
    rows = logicalrep.read(URI, "users", storage_options=store.options).arrow().to_pylist()
    expected = db18.rows("SELECT id, email, big, town, more FROM users")
    assert {tuple(row[name] for name in names) for row in rows} == {
        (id_, _hashed(email), None, _hashed(big), town, more) for id_, email, big, town, more in expected
    }
    assert len(rows) == len(expected) > 0
    assert {verdict.result for verdict in verify(db18.settings, Storage(URI, store.options))} == {"equal"}
    shown = [key for key, text in _contents(store) if "sesame" in text.replace("sesame no secret", "")]
    assert shown == []
