"""Catalogs by their names: a server of the tests does what the documents and issues of a catalog say that it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from logicalrep.observe.observer import Observers
from logicalrep.pipeline.formats.iceberg.catalogs.connecting import connect
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.patience import Patience
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.formats.iceberg.catalogs.named import CATALOGS
from tests.pipeline.formats.iceberg.catalogs.owner import Clock, Owner
from tests.pipeline.formats.iceberg.catalogs.owner_server import EXPIRED
from tests.pipeline.formats.iceberg.catalogs.services import compact, expire_all
from tests.pipeline.formats.iceberg.catalogs.tables import open_table
from tests.pipeline.formats.iceberg.tables import delete, insert
from tests.pipeline.histories import table
from tests.pipeline.stored import APP, MARKS_IN_SMALL_FILES

pytestmark = pytest.mark.filterwarnings("ignore:Iceberg scan planning", "ignore:.*unclosed:ResourceWarning")


@pytest.mark.parametrize("name", CATALOGS)
def test_a_table_lives_in_a_named_catalog(owner: Owner, name: str) -> None:
    catalog, server = CATALOGS[name], owner.server
    server.profile, server.vend = catalog.profile, catalog.credentials
    owner = replace(owner, options=catalog.options(server), storage=replace(owner.storage, limits=MARKS_IN_SMALL_FILES))
    spec = table(("id",), TableSettings(write_mode="merge-on-read", format="iceberg"))
    stored = owner.new_table(spec=spec)
    steps: list[Callable[[], object]] = [
        lambda: insert(stored, 1000, range(100)),
        lambda: delete(stored, 1001, range(2)),
        lambda: stored.describe(with_comment(spec)),
        lambda: insert(stored, 1002, range(100, 103)),
    ]
    for step in steps:
        if server.tokens is not None:
            server.tokens.append(EXPIRED)
        Patience(Observers(), Clock(), str, 30.0).run(step)
        if catalog.has_service:
            compact(connect(owner.settings, server.warehouse))
            expire_all(connect(owner.settings, server.warehouse))
    reopened = open_table(owner.open())
    assert reopened.foreign_change(-1) is None
    assert (reopened.applied(APP), reopened.files) == (Lsn(1002), stored.files)
    reopened.maintain(0)
    insert(reopened, 1003, range(103, 105))
    assert owner.ids() == list(range(2, 105))
    assert server.position_deletes > 0 or catalog.profile.takes_equality_deletes
    owner.open().remove("public/t")
    assert server.tables == {}


def with_comment(spec: TableSpec) -> TableSpec:
    return replace(spec, comments=((1, "the key"),))
