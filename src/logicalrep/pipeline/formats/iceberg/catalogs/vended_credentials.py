"""The credentials that a REST catalog hands out for a table's files, renewed before they expire.

They exist in memory alone. Another process asks the catalog for its own. Source: "LoadTableResult" and
"StorageCredential" in the OpenAPI document of Iceberg's REST catalogs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import urlsplit

from pyiceberg.catalog import Catalog

from logicalrep.pipeline.formats.catalog_errors import CatalogError, InvalidCatalogError
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings
from logicalrep.pipeline.formats.iceberg.catalogs.connecting import ask, connect_rest
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.pipeline.storage.uris import is_folder

_SHORT = 15 * 60.0
"""The seconds after which credentials are renewed that name no expiry."""
_EARLY = 5 * 60.0
"""The seconds before the expiry from which the store's client asks for new credentials with each request."""
_OPTIONS = {
    "s3.endpoint": "aws_endpoint",
    "s3.region": "aws_region",
    "client.region": "aws_region",
    "gcs.service.host": "google_base_url",
}
_S3, _AZURE = ("s3", "s3a"), ("abfs", "abfss")
_CLIENT = ("allow_http", "aws_allow_http", "proxy_url", "timeout", "connect_timeout")
"""The options of `--storage-option` that a vended store needs too; none of them is a credential."""


@dataclass(frozen=True)
class VendedCredentials:
    """A provider of a table's credentials for obstore."""

    settings: CatalogSettings
    name: tuple[str, str]
    uri: str
    """The location of the table."""
    limits: Limits

    def __call__(self) -> dict[str, Any]:
        answer = _CONNECTIONS.answer(self.settings, self.name, self.limits)
        credentials = credentials_in(answer.config, self.uri, answer.renewal + _EARLY)
        if credentials is None:
            raise CatalogError(f"the catalog {self.settings.shown} no longer has credentials for {self.uri}")
        return credentials


@dataclass(frozen=True)
class _Answer:
    """An answer with credentials; times are in seconds since 1970."""

    config: Mapping[str, str]
    renewal: float
    """The time from which new credentials are asked for, so that short-lived ones serve many requests to the store."""
    expiry: float

    @classmethod
    def of(cls, config: Mapping[str, str]) -> Self:
        current_time = time.time()
        expiry = _expiry(config, current_time + _SHORT)
        return cls(config, expiry - min(_EARLY, max(expiry - current_time, 0) / 2), expiry)


@dataclass
class _Connections:
    """The connections of a process to catalogs, and the last answers about credentials."""

    catalogs: dict[object, Catalog] = field(default_factory=dict)
    answers: dict[object, _Answer] = field(default_factory=dict)
    turn: Any = field(default_factory=threading.Lock)

    def answer(self, settings: CatalogSettings, name: tuple[str, str], limits: Limits) -> _Answer:
        catalog_key = (settings.uri, *sorted(settings.options.items()))
        key = (catalog_key, name)
        with self.turn:
            last = self.answers.get(key)
            if last is not None and time.time() < last.renewal:
                return last
            try:
                if catalog_key not in self.catalogs:
                    self.catalogs[catalog_key] = ask(settings, lambda: connect_rest(settings, limits))
                catalog = self.catalogs[catalog_key]
                self.answers[key] = _Answer.of(ask(settings, lambda: catalog.load_table(name)).config)
            except CatalogError as error:
                # Credentials that have not expired do until the catalog answers again.
                if last is None or time.time() >= last.expiry or not error.may_pass:
                    raise
            return self.answers[key]


_CONNECTIONS = _Connections()


def placed(
    settings: CatalogSettings, name: tuple[str, str], uri: str, config: Mapping[str, str], to: Storage
) -> Storage:
    """Return the storage of a table's location.

    Args:
        settings: the catalog.
        name: the table's name in the catalog.
        uri: the location.
        config: the configuration in the catalog's answer.
        to: the destination, whose options reach the location if the catalog hands out no credentials.

    Raises InvalidCatalogError if the catalog signs each request itself, or names a folder of this machine.
    """
    has_credentials = credentials_in(config, uri, 0.0) is not None
    if not has_credentials and config.get("s3.remote-signing-enabled") == "true":
        raise InvalidCatalogError(
            f"the catalog {settings.shown} signs each request to the store itself, which replicate does not support: "
            "let the catalog vend credentials, or add --catalog-option access-delegation=none"
        )
    if is_folder(uri) and not to.is_local:
        raise InvalidCatalogError(
            f"the catalog {settings.shown} has the table {'.'.join(name)} in the folder {uri}: --to has to be a "
            "folder too"
        )
    if not has_credentials:
        return Storage(uri, to.storage_options, to.limits)
    options = {name: value for name, value in to.storage_options.items() if name in _CLIENT}
    options |= _options_of(config, uri)
    return Storage(uri, options, to.limits, VendedCredentials(settings, name, uri, to.limits))


def _options_of(config: Mapping[str, str], uri: str) -> dict[str, str]:
    """Return the options for the store of a location that a table's configuration names."""
    scheme, account = uri.partition("://")[0], _account(uri)
    kinds = {"s3": "aws_", "s3a": "aws_", "gs": "google_"}
    options = {
        option: config[name]
        for name, option in _OPTIONS.items()
        if name in config and option.startswith(kinds.get(scheme, "\0"))
    }
    if scheme in _S3 and config.get("s3.path-style-access") == "false":
        options["aws_virtual_hosted_style_request"] = "true"
    if scheme in _AZURE and (authority := config.get("adls.blob-storage-authority")):
        # pyiceberg's property has the end of a host, or a host without the account.
        host = f"{account}{authority}" if authority.startswith(".") else f"{authority}/{account}"
        options["azure_endpoint"] = f"{config.get('adls.blob-storage-scheme', 'https')}://{host}"
    return options


def _account(uri: str) -> str:
    """Return the account in a location of Azure, such as `abfss://container@account.dfs.core.windows.net/folder`."""
    return (urlsplit(uri).hostname or "").partition(".")[0]


def credentials_in(config: Mapping[str, str], uri: str, until: float) -> dict[str, Any] | None:
    """Return the credentials in a table's configuration as obstore takes them; None without credentials.

    Args:
        config: the configuration in the catalog's answer.
        uri: the location of the table.
        until: the expiry for the store's client, in seconds since 1970.
    """
    scheme, account = uri.partition("://")[0], _account(uri)
    expires_at = datetime.fromtimestamp(until, UTC)
    if scheme in _S3 and "s3.access-key-id" in config:
        return {
            "access_key_id": config["s3.access-key-id"],
            "secret_access_key": config["s3.secret-access-key"],
            "token": config.get("s3.session-token"),
            "expires_at": expires_at,
        }
    if scheme == "gs" and "gcs.oauth2.token" in config:
        return {"token": config["gcs.oauth2.token"], "expires_at": expires_at}
    if scheme in _AZURE:
        # The name ends with the account or with its host.
        start = f"adls.sas-token.{account}"
        tokens = [value for name, value in config.items() if name == start or name.startswith(f"{start}.")]
        if tokens:
            return {"sas_token": tokens[0], "expires_at": expires_at}
    return None


def _expiry(config: Mapping[str, str], default: float) -> float:
    """Return the time of the expiry in seconds since 1970."""
    names = ("s3.session-token-expires-at-ms", "gcs.oauth2.token-expires-at", "adls.sas-token-expires-at-ms")
    times = [int(value) / 1000 for name, value in config.items() if name.startswith(names) and value.isdecimal()]
    return min(times, default=default)
