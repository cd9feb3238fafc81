"""Stores of the credentials that a catalog hands out: their endpoints, and the headers of requests to them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from logicalrep.pipeline.formats.catalog_errors import InvalidCatalogError
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.iceberg.catalogs.vended_credentials import credentials_in, placed
from logicalrep.pipeline.storage.storage import Storage
from tests.pipeline.formats.iceberg.catalogs.owner import Owner
from tests.pipeline.formats.iceberg.catalogs.owner_server import OwnerServer
from tests.pipeline.formats.iceberg.tables import insert
from tests.pipeline.storage.stores import start_object_store

pytestmark = pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning")

AZURE = "abfss://lake@shop.dfs.core.windows.net/t"


@contextmanager
def recording_requests() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Run a server that takes everything; yield its URL, and the paths of requests with their authorizations."""
    requests: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            requests.append((self.path, self.headers.get("Authorization", "")))
            self.send_response(200)
            self.send_header("ETag", '"1"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_catalog_or_its_user_names_the_endpoint_of_the_store(tmp_path: Path) -> None:
    with start_object_store() as store:
        store.accepts = lambda key: key in ("key", "vended")
        server = OwnerServer(Storage("s3://lake/warehouse", store.options))
        server.vend = lambda: {"s3.access-key-id": "vended", "s3.secret-access-key": "vended-secret"}
        with server.running():
            # An endpoint of --to is another store's.
            storage = Storage(str(tmp_path), {"aws_allow_http": "true", "aws_endpoint": "http://127.0.0.1:9"})
            owner = Owner(server, storage, {"s3.endpoint": store.url, "s3.region": "us-east-1"})
            insert(owner.new_table(), 1000, range(3))
            assert owner.ids() == [0, 1, 2]


def test_a_token_of_google_is_in_the_requests_to_the_host_of_the_configuration(tmp_path: Path) -> None:
    with recording_requests() as (url, requests):
        config, uri = {"gcs.oauth2.token": "vended", "gcs.service.host": url}, "gs://lake/warehouse/t"
        to = Storage(str(tmp_path), {"allow_http": "true"})
        storage = placed(CatalogSettings("https://catalog.example.org"), ("public", "t"), uri, config, to)
        replace(storage, credentials=lambda: credentials_in(config, uri, time.time() + 3600)).write(
            "data/x.parquet", b"x"
        )
        assert requests == [("/lake/warehouse%2Ft%2Fdata%2Fx%2Eparquet", "Bearer vended")]


def test_credentials_are_used_where_the_catalog_could_sign_too(tmp_path: Path) -> None:
    settings, to = CatalogSettings("https://catalog.example.org"), Storage(str(tmp_path))
    signs = {"s3.remote-signing-enabled": "true"}
    keys = {"s3.access-key-id": "vended", "s3.secret-access-key": "vended-secret"}
    assert placed(settings, ("public", "t"), "s3://lake/t", {**signs, **keys}, to).credentials is not None
    with pytest.raises(InvalidCatalogError, match="signs each request"):
        placed(settings, ("public", "t"), "s3://lake/t", signs, to)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"adls.sas-token.shop": "one"}, "one"),
        ({"adls.sas-token.shop.dfs.core.windows.net": "one"}, "one"),
        # The token of another account, whose name begins with this account's name.
        ({"adls.sas-token.shop2": "two", "adls.sas-token.shop": "one"}, "one"),
        ({"adls.sas-token.shop2": "two"}, None),
        ({}, None),
    ],
)
def test_the_token_of_an_account_of_azure_is_chosen(config: dict[str, str], expected: str | None) -> None:
    credentials = credentials_in(config, AZURE, time.time() + 3600)
    assert (credentials and credentials["sas_token"]) == expected
