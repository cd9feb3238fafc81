"""Faults of catalogs that own their tables: expired tokens, other writers, pauses, and refused names and properties."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import pytest

from logicalrep.observe.observer import Observers
from logicalrep.pipeline.formats.catalog_errors import CatalogError, InvalidCatalogError
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.iceberg.catalogs.connecting import connect
from logicalrep.pipeline.formats.stored_table import ForeignTableError
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.schema.table_settings import TableSettings
from logicalrep.pipeline.schema.table_spec import TableSpec
from logicalrep.pipeline.storage.patience import Patience
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn
from tests.pipeline.formats.iceberg.catalogs.owner import Clock, Owner
from tests.pipeline.formats.iceberg.catalogs.owner_server import EXPIRED, Fault, Profile
from tests.pipeline.formats.iceberg.tables import insert
from tests.pipeline.histories import table
from tests.pipeline.stored import APP
from tests.pipeline.typed_changes import table_spec

pytestmark = pytest.mark.filterwarnings("ignore:Iceberg scan planning", "ignore:.*unclosed:ResourceWarning")

TABLE = "/namespaces/public/tables/t"


def test_a_token_that_expires_during_a_load_is_renewed(owner: Owner) -> None:
    token_uri = f"{owner.server.uri}/v1/oauth/tokens"
    owner = replace(owner, options={"credential": "client:s3cret", "oauth2-server-uri": token_uri})
    tokens = owner.server.tokens = []
    tables, spec = owner.open(), table(("id",), TableSettings(format="iceberg"))
    tables.prepare("public/t", spec)
    stored = owner.new_table()
    for number in range(3):
        tokens.append(EXPIRED)
        insert(stored, 1000 + number, range(number, number + 1))
    tokens.append(EXPIRED)
    assert tables.is_own("public/t")
    assert owner.ids() == [0, 1, 2]


@pytest.mark.parametrize("is_in_variable", [False, True])
def test_a_renewed_token_that_expires_at_once_is_renewed_again(
    owner: Owner, is_in_variable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"credential": "client:s3cret", "oauth2-server-uri": f"{owner.server.uri}/v1/oauth/tokens"}
    if is_in_variable:
        monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__CREDENTIAL", options.pop("credential"))
    owner = replace(owner, options=options)
    owner.server.tokens = []
    stored = owner.new_table()
    fault = Fault("POST", TABLE, 401, times=2)
    owner.server.faults.append(fault)
    Patience(Observers(), Clock(), str, 30.0).run(lambda: insert(stored, 1000, range(3)))
    assert (fault.times, owner.ids()) == (0, [0, 1, 2])


def test_a_token_that_cannot_be_renewed_is_reported(owner: Owner) -> None:
    owner = replace(owner, options={"token": "token0"})
    stored = owner.new_table()
    owner.server.tokens = ["token1"]
    with pytest.raises(InvalidCatalogError, match="the token has expired") as refused:
        insert(stored, 1000, range(3))
    assert not refused.value.may_pass
    owner.server.tokens = ["token0"]
    insert(stored, 1000, range(3))
    assert (stored.applied(APP), owner.ids()) == (Lsn(1000), [0, 1, 2])


@pytest.mark.parametrize("option", ["credential", "token", "rest.sigv4-enabled"])
def test_a_service_without_answers_is_abandoned_from_the_first_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # It accepts connections, and nobody reads the requests.
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        values = {"credential": "client:s3cret", "token": "s3cret", "rest.sigv4-enabled": "true"}
        options = {option: values[option], "oauth2-server-uri": f"{uri}/tokens"}
        storage = Storage(str(tmp_path), limits=Limits(catalog_answer_seconds=0.1))
        with pytest.raises(CatalogError, match="timed out") as away:
            connect(CatalogSettings(uri, options), storage)
        assert away.value.may_pass


def test_a_table_that_another_process_creates_first_is_used(owner: Owner) -> None:
    owner.server.faults.append(Fault("POST", "/tables", 409, is_done=True))
    insert(owner.new_table(), 1000, range(3))
    assert owner.ids() == [0, 1, 2]


def test_a_table_that_another_destination_creates_first_is_refused(owner: Owner, tmp_path: Path) -> None:
    other = replace(owner, storage=Storage(str(tmp_path / "other")))

    def create() -> None:
        insert(other.new_table(), 1000, range(5))

    owner.server.faults.append(Fault("POST", "/tables", 409, then=create))
    with pytest.raises(ForeignTableError, match="two tables have one name there"):
        owner.new_table()
    assert other.ids() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (lambda: "7", 7.0),
        (lambda: formatdate(usegmt=True), 0.5),
        (lambda: "soon", 0.5),
        (lambda: "-1", 0.5),
        (lambda: "86400", 600.0),
        (lambda: "Fri, 31 Dec 9999 23:59:59 GMT", 600.0),
    ],
)
def test_a_retry_waits_as_long_as_the_catalog_asks(owner: Owner, value: Callable[[], str], expected: float) -> None:
    stored, clock = owner.new_table(), Clock()
    fault = Fault("POST", TABLE, 429, headers={"Retry-After": value()}, times=2)
    owner.server.faults.append(fault)
    Patience(Observers(), clock, str, 30.0).run(lambda: insert(stored, 1000, range(3)))
    assert clock.pauses == [expected, max(expected, 1.0)]
    assert owner.ids() == [0, 1, 2]


def spec_of(*names: str) -> TableSpec:
    """Return a table of integer columns, of which the first is the key."""
    return replace(table_spec(dict.fromkeys(names, (23, -1)), names[:1]), settings=TableSettings(format="iceberg"))


def test_a_catalog_that_changes_the_names_of_columns_is_refused(owner: Owner) -> None:
    owner.server.profile = Profile(lowers_columns=True)
    with pytest.raises(ForeignTableError, match="the catalog has changed B to b, BIG to big; rename the columns"):
        owner.open().prepare("public/t", spec_of("id", "B", "BIG"))
    # Names in small letters stay.
    stored = owner.new_table(spec=spec_of("id", "b"))
    with pytest.raises(ForeignTableError, match="the catalog has changed V to v; rename the columns"):
        stored.describe(spec_of("id", "b", "V"))


@pytest.mark.parametrize("profile", [Profile(reserved=("logicalrep.",)), Profile(omitted=("logicalrep.",))])
def test_a_catalog_without_properties_of_replicate_is_refused(owner: Owner, profile: Profile) -> None:
    owner.server.profile = profile
    with pytest.raises(
        InvalidCatalogError, match=r"logicalrep\.destination.*properties whose names begin with"
    ) as refused:
        owner.new_table()
    assert not refused.value.may_pass


def test_a_property_that_only_a_commit_sets_is_named_too(owner: Owner) -> None:
    stored = owner.new_table()
    owner.server.profile = Profile(reserved=("logicalrep.applied",))
    with pytest.raises(CatalogError, match=r"logicalrep\.applied is reserved; replicate needs its own properties"):
        insert(stored, 1000, range(3))


def test_a_catalog_that_has_no_credentials_is_refused_with_the_option_for_it(owner: Owner) -> None:
    owner.server.profile = Profile(needs_credentials=True)
    with pytest.raises(
        InvalidCatalogError, match=r"no credentials are available; .* access-delegation=none"
    ) as refused:
        owner.new_table()
    assert not refused.value.may_pass
