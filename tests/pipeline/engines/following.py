"""Tables that an engine loads and follows."""

from __future__ import annotations

from pathlib import Path

from logicalrep.observe.observer import Observers
from logicalrep.pipeline.engines.engine import Engine
from logicalrep.pipeline.run.run import replicate_with
from tests.pipeline.comparison import find_differences
from tests.pipeline.replicating import TABLES, settings
from tests.postgres.servers import Database


def check_that_tables_follow(engine: Engine, shop: Database, storage: Path) -> None:
    """Load the shop's tables and follow some changes of each kind; the tables are equal after each run."""
    for _ in range(3):
        replicate_with(settings(shop, storage, once=True), Observers(), engine=engine)
        assert find_differences(shop.dsn, str(storage), TABLES) == {}
        shop.execute(
            "UPDATE customer SET city = 'Erlangen' WHERE id % 3 = 0",
            "DELETE FROM orders WHERE id % 7 = 0",
            "INSERT INTO audit VALUES (NULL, NULL), ('2021-01-01', 'new')",
        )
