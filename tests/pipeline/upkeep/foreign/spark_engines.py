"""Spark with Iceberg's runtime, and with Delta's: merged files, expiry, orphans, branches, tags, and rows of its own."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from logicalrep.pipeline.schema.table_formats import FormatName
from tests.pipeline.upkeep.foreign.engine import FOLDER, ForeignEngine
from tests.pipeline.upkeep.foreign.pyiceberg_engine import PyIceberg
from tests.pipeline.upkeep.foreign.spark_server import LostRaceError, SparkError, start

_TABLE = "`default`.public.t"
_CATALOG = "spark.sql.catalog.default"


class SparkOnIceberg(PyIceberg):
    """Spark with Iceberg's runtime, in folders and catalogs. pyiceberg reads what Spark has made."""

    lost_races = (LostRaceError,)

    def __init__(self, lake: Path, catalog: str | None, chance: random.Random) -> None:
        super().__init__(lake, catalog, chance)
        settings = {"type": "hadoop", "warehouse": str(lake)}
        if catalog is not None and catalog.startswith("http"):
            settings = {"type": "rest", "uri": catalog, "rest-metrics-reporting-enabled": "false"}
        elif catalog is not None:
            implementation = {"catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog", "jdbc.schema-version": "V1"}
            settings = {"uri": f"jdbc:{catalog.replace('///', '')}", "warehouse": str(lake)} | implementation
        settings["cache-enabled"] = "false"
        self._spark = start()
        self._spark.begin(
            {_CATALOG: "org.apache.iceberg.spark.SparkCatalog"}
            | {f"{_CATALOG}.{name}": value for name, value in settings.items()}
        )

    def steps(self) -> Mapping[str, Callable[[], object]]:
        return {
            "rewrite the files": lambda: self._call("rewrite_data_files", "options => map('rewrite-all', 'true')"),
            "rewrite position deletes": lambda: self._call(
                "rewrite_position_delete_files", "options => map('rewrite-all', 'true')"
            ),
            "rewrite manifests": lambda: self._call("rewrite_manifests"),
            "expire snapshots": self._expire,
            "remove orphans": self._remove_orphans,
            "make a branch": self._make_branch,
            "tag": self._tag,
            "commit to a branch": self._commit_to_branch,
            "delete from a branch": self._delete_from_branch,
            "drop a reference": self._drop_reference,
            "set a property": lambda: self._alter(f"SET TBLPROPERTIES ('kept_by' = '{self.chance.random()}')"),
            "append rows": self._append,
            "delete rows": self._delete,
            "roll back": self._roll_back,
        }

    def _call(self, procedure: str, *arguments: str) -> None:
        listed = ", ".join(["table => 'public.t'", *arguments])
        self._spark.run(f"CALL `default`.system.{procedure}({listed})")

    def _expire(self) -> None:
        retained = self.chance.choice([1, 3])
        with self._files_may_go():
            self._call("expire_snapshots", f"older_than => TIMESTAMP '2100-01-01', retain_last => {retained}")
        self._note_expiry()

    def _remove_orphans(self) -> None:
        # Files of the last three days stay: a commit that is being made may need them.
        with self._files_may_go():
            self._call("remove_orphan_files")

    @contextmanager
    def _files_may_go(self) -> Iterator[None]:
        """Allow Spark to delete files, which the property `gc.enabled` of replicated tables forbids."""
        self._alter("SET TBLPROPERTIES ('gc.enabled' = 'true')")
        try:
            yield
        finally:
            self._alter("SET TBLPROPERTIES ('gc.enabled' = 'false')")

    def _alter(self, change: str) -> None:
        self._spark.run(f"ALTER TABLE {_TABLE} {change}")

    def _make_branch(self) -> None:
        snapshot, name = self._any_snapshot(self._load()).snapshot_id, f"branch{self._count}"
        self._count += 1
        retention = self.chance.choice(["", " WITH SNAPSHOT RETENTION 2 SNAPSHOTS", " RETAIN 1 DAYS"])
        self._alter(f"CREATE BRANCH {name} AS OF VERSION {snapshot}{retention}")
        self._note(name)

    def _tag(self) -> None:
        snapshot, name = self._any_snapshot(self._load()).snapshot_id, f"tag{self._count}"
        self._count += 1
        self._alter(f"CREATE TAG {name} AS OF VERSION {snapshot}")
        self._note(name)

    def _commit_to_branch(self) -> None:
        branch = self._branch()
        if branch is not None:
            self._spark.run(f"INSERT INTO {_TABLE}.branch_{branch} SELECT * FROM {_TABLE} LIMIT 2")
            self._note(branch)

    def _delete_from_branch(self) -> None:
        branch = self._branch()
        if branch is not None:
            self._spark.run(f"DELETE FROM {_TABLE}.branch_{branch} WHERE id < {self.chance.randrange(1, 20)}")
            self._note(branch)

    def _drop_reference(self) -> None:
        if self._rows:
            name = self.chance.choice(list(self._rows))
            self._alter(f"DROP {'BRANCH' if name.startswith('branch') else 'TAG'} {name}")
            del self._rows[name]

    def _append(self) -> None:
        self._spark.run(f"INSERT INTO {_TABLE} SELECT * FROM {_TABLE} LIMIT 1")
        self.row_changes += 1

    def _delete(self) -> None:
        self._spark.run(f"DELETE FROM {_TABLE} WHERE id < {self.chance.randrange(1, 20)}")
        self.row_changes += 1

    def _roll_back(self) -> None:
        table = self._load()
        snapshots = [entry.snapshot_id for entry in table.history()[:-1]]
        ancestors = [snapshot for snapshot in snapshots if table.snapshot_by_id(snapshot) is not None]
        if ancestors:
            self._call("set_current_snapshot", f"snapshot_id => {self.chance.choice(ancestors)}")
            self.row_changes += 1


class SparkOnDelta(ForeignEngine):
    """Spark with Delta's runtime."""

    format: ClassVar[FormatName] = "delta"
    lost_races = (LostRaceError,)

    def __init__(self, lake: Path, catalog: str | None, chance: random.Random) -> None:
        super().__init__(lake, catalog, chance)
        self._table = f"delta.`{lake / FOLDER}`"
        self._spark = start()
        # Without any retention VACUUM would delete the files of a commit that is being made: it keeps an hour.
        self._spark.begin({"spark.databricks.delta.retentionDurationCheck.enabled": "false"})

    def steps(self) -> Mapping[str, Callable[[], object]]:
        return {
            "optimize": lambda: self._spark.run(f"OPTIMIZE {self._table}"),
            "z-order": lambda: self._spark.run(f"OPTIMIZE {self._table} ZORDER BY (id)"),
            "purge": lambda: self._spark.run(f"REORG TABLE {self._table} APPLY (PURGE)"),
            "vacuum": lambda: self._vacuum("RETAIN 1 HOURS"),
            "vacuum lite": lambda: self._vacuum("LITE RETAIN 1 HOURS"),
            "set a property": self._set_property,
            "append rows": self._append,
            "delete rows": self._delete,
            "restore a version": self._restore,
        }

    def _vacuum(self, options: str) -> None:
        try:
            self._spark.run(f"VACUUM {self._table} {options}")
        except SparkError as error:
            # Delta 4.4 cannot vacuum tables with deletion vectors in the log itself, and LITE refuses a log whose first
            # commits are deleted. Neither deletes anything.
            if "MatchError: Some(DeletionVectorDescriptor(i," not in str(error) and "LITE" not in options:
                raise

    def _set_property(self) -> None:
        self._spark.run(f"ALTER TABLE {self._table} SET TBLPROPERTIES ('kept_by' = '{self.chance.random()}')")
        # A commit may have other columns as well: what it changes in the metadata is not looked at.
        self.row_changes += 1

    def _append(self) -> None:
        self._spark.run(f"INSERT INTO {self._table} SELECT * FROM {self._table} LIMIT 1")
        self.row_changes += 1

    def _delete(self) -> None:
        self._spark.run(f"DELETE FROM {self._table} WHERE id < {self.chance.randrange(1, 20)}")
        self.row_changes += 1

    def _restore(self) -> None:
        version = self._spark.run(f"DESCRIBE HISTORY {self._table} LIMIT 1")[0]["version"]
        # The log or the files of an old version may be deleted.
        with suppress(SparkError):
            self._spark.run(
                f"RESTORE TABLE {self._table} TO VERSION AS OF {max(0, version - self.chance.randrange(4))}"
            )
            self.row_changes += 1
