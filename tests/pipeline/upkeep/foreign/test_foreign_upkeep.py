"""Another engine's upkeep at random between the steps of `replicate`, by format, catalog and engine.

One seed of forty steps takes one to two minutes. `make test-all` has a few for each engine and catalog; ENGINE_SEARCH has
the minutes of a longer search, from SEED on.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.catalog.sql import SqlCatalog

from logicalrep.pipeline.schema.table_settings import TableSettings
from tests.pipeline.formats.iceberg.catalogs.rest_server import RestServer
from tests.pipeline.upkeep.foreign.delta_rs_engine import DeltaRs
from tests.pipeline.upkeep.foreign.engine import ForeignEngine
from tests.pipeline.upkeep.foreign.playing import Play
from tests.pipeline.upkeep.foreign.pyiceberg_engine import PyIceberg
from tests.pipeline.upkeep.foreign.spark_engines import SparkOnDelta, SparkOnIceberg
from tests.pipeline.upkeep.foreign.spark_server import SparkNotInstalledError
from tests.postgres.servers import create_database

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.postgres,
    pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning", "ignore:Iceberg scan planning", "ignore:Delete op"),
]

MINUTES, SEED = float(os.environ.get("ENGINE_SEARCH", "0")), int(os.environ.get("SEED", "1"))
ENGINES: list[type[ForeignEngine]] = [PyIceberg, DeltaRs, SparkOnIceberg, SparkOnDelta]
KINDS = [pytest.param(engine, kind, id=f"{engine.__name__}-{kind}") for engine in ENGINES for kind in engine.catalogs]


@contextmanager
def catalog_uri(kind: str, folder: Path) -> Iterator[str | None]:
    """Yield the URI of a catalog of a kind; None for none."""
    if kind == "rest":
        catalog = SqlCatalog("behind", uri=f"sqlite:///{folder}/behind.db")
        with RestServer(catalog).running() as server:
            yield server.uri
        catalog.engine.dispose()
        return
    yield f"sqlite:///{folder}/catalog.db" if kind == "sqlite" else None


def search(engine: type[ForeignEngine], kind: str, seed: int, folder: Path, steps: int = 40) -> None:
    """Play the steps of a seed; fail with what is wrong, and what led to it."""
    folder.mkdir()
    chance = random.Random(f"{engine.__name__}/{kind}/{seed}")
    settings = TableSettings(
        write_mode=chance.choice(["copy-on-write", "merge-on-read"]), partition_by=chance.choice([(), ("city",)])
    )
    with create_database(18) as db, catalog_uri(kind, folder) as uri:
        lake = folder / "lake"
        try:
            started = engine(lake, uri, chance)
        except SparkNotInstalledError as error:
            pytest.skip(str(error))
        played = Play(db, lake, started, chance, settings).run(steps)
    assert not played.wrong, f"seed {seed}: {played.wrong} after {played.steps}"


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("engine", "kind"), KINDS)
def test_rows_equal_the_servers_whatever_other_engines_do(
    engine: type[ForeignEngine], kind: str, seed: int, tmp_path: Path
) -> None:
    search(engine, kind, seed, tmp_path / "search")


@pytest.mark.skipif(not MINUTES, reason="ENGINE_SEARCH has the minutes")
@pytest.mark.parametrize(("engine", "kind"), KINDS)
def test_rows_are_those_of_the_server_for_minutes(engine: type[ForeignEngine], kind: str, tmp_path: Path) -> None:
    end = time.monotonic() + 60 * MINUTES
    for seed in count(SEED):
        search(engine, kind, seed, tmp_path / f"search{seed}")
        if time.monotonic() > end:
            return
