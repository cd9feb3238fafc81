"""Catalogs by their names: a server of the tests does what the documents and issues of a catalog say that it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from logicalrep.observe.observer import Observers
from logicalrep.pipeline.formats.iceberg.catalogs.connecting import connect
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.patience import Patience
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.formats.iceberg.catalogs.owner import Clock, Owner
from tests.pipeline.formats.iceberg.catalogs.owner_server import Profile
from tests.pipeline.formats.iceberg.catalogs.services import compact, expire_all
from tests.pipeline.formats.iceberg.catalogs.tables import open_table
from tests.pipeline.formats.iceberg.tables import delete, insert
from tests.pipeline.histories import table
from tests.pipeline.stored import APP, MARKS_IN_SMALL_FILES

pytestmark = pytest.mark.filterwarnings("ignore:Iceberg scan planning", "ignore:.*unclosed:ResourceWarning")


@dataclass(frozen=True)
class NamedCatalog:
    profile: Profile
    has_service: bool = False
    """Whether a service merges files and removes snapshots after each commit."""
    has_tokens: bool = False
    """Whether clients need OAuth tokens, which expire before each commit."""
    credentials: Callable[[], dict[str, str]] = dict


CATALOGS = {
    "Unity Catalog": NamedCatalog(
        Profile(
            stages=False, forced={"write.object-storage.enabled": "true"}, reserved=("delta.", "write.", "history.")
        )
    ),
    "Polaris": NamedCatalog(
        Profile(needs_credentials=True), has_tokens=True, credentials=lambda: {"s3.access-key-id": "of a store"}
    ),
    "S3 Tables": NamedCatalog(Profile(stages=False), has_service=True),
    "Horizon": NamedCatalog(Profile(takes_equality_deletes=False)),
    "Glue": NamedCatalog(Profile(lowers_columns=True)),
}


@pytest.mark.parametrize("name", CATALOGS)
def test_a_table_lives_in_a_named_catalog(owner: Owner, name: str) -> None:
    catalog, server = CATALOGS[name], owner.server
    server.profile, server.vend = catalog.profile, catalog.credentials
    if catalog.has_tokens:
        server.tokens = []
        options = {"credential": "client:s3cret", "oauth2-server-uri": f"{server.uri}/v1/oauth/tokens"}
        owner = replace(owner, options=options)
    owner = replace(owner, storage=replace(owner.storage, limits=MARKS_IN_SMALL_FILES))
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
            server.tokens.append("of another time")
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
