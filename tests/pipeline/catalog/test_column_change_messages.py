"""replicate reports each change of a table's columns once, in words, and nothing else."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from logicalrep.pipeline.limits import Limits
from tests.pipeline.replicating import replicate_once
from tests.postgres.servers import Database


def test_changed_columns_are_reported(db18: Database, tmp_path: Path) -> None:
    heard, limits = tmp_path / "heard", Limits(loads_at_once=1_000_000)
    command = f"cat >> {shlex.quote(str(heard))} && echo >> {shlex.quote(str(heard))}"

    def changes_reported(*statements: str) -> list[str]:
        db18.execute(*statements)
        heard.write_text("")
        replicate_once(
            db18, tmp_path / "lake", limits=limits, history=True, unrepresentable="null", call_on_schema_change=command
        )
        events = [json.loads(line) for line in heard.read_text().splitlines()]
        assert {(event["event"], event["table"]) for event in events} <= {("schema_changed", "public.t")}
        return [event["text"] for event in events]

    create = "CREATE TABLE t (id int PRIMARY KEY, v text, price numeric(10,2), day date NOT NULL)"
    assert changes_reported(create, "INSERT INTO t VALUES (1, 'a', 1.5, '2026-01-01')") == []
    assert changes_reported("ALTER TABLE t ADD n int DEFAULT 3, DROP v") == ["n added: int; v dropped"]
    assert changes_reported("ALTER TABLE t RENAME n TO m") == ["n renamed to m"]
    # It is followed with a row, and without one; a load for another type tells it too.
    assert changes_reported("ALTER TABLE t RENAME m TO k", "INSERT INTO t VALUES (2, 3, '2026-01-01', 4)") == [
        "m renamed to k"
    ]
    assert changes_reported("ALTER TABLE t ALTER price TYPE numeric(12,2)") == ["price: decimal(10,2) is decimal(12,2)"]
    assert changes_reported("ALTER TABLE t ALTER k TYPE bigint") == ["k: int is bigint"]
    assert changes_reported("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id, day)") == ["the key is id, day"]
    assert changes_reported("COMMENT ON TABLE t IS 'x'", "ALTER TABLE t ALTER k SET DEFAULT 1", "VACUUM FULL t") == []
    assert changes_reported("UPDATE t SET price = 2", "CREATE TABLE other (id int PRIMARY KEY)") == []
    recreated = "CREATE TABLE t (id int, day date, id2 bigint, PRIMARY KEY (id, day))"
    assert changes_reported("DROP TABLE t", recreated) == ["id2 added: bigint; price dropped; k dropped"]
