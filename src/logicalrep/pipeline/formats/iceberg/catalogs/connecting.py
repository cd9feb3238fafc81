"""The connection to an Iceberg catalog, by pyiceberg, with timeouts for a silent catalog.

SQL catalogs and Glue leave the metadata files to their clients: replicate reads and writes them by `Storage`.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, TypeVar, cast

from psycopg.conninfo import make_conninfo
from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.catalog.rest import RestCatalog, TableResponse
from pyiceberg.exceptions import (
    BadRequestError,
    ForbiddenError,
    NamespaceAlreadyExistsError,
    NoSuchPropertyException,
    OAuthError,
    UnauthorizedError,
)
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties
from pyiceberg.utils.config import merge_config
from requests import HTTPError, PreparedRequest, Response, Session

from logicalrep.options.extras import find_missing, installing
from logicalrep.pipeline.formats.catalog_errors import CatalogError, InvalidCatalogError
from logicalrep.pipeline.formats.catalog_settings import DELEGATION, CatalogSettings
from logicalrep.pipeline.formats.iceberg.catalogs.users_options import users_options
from logicalrep.pipeline.formats.iceberg.memory_files import FileToStorage, StorageFiles
from logicalrep.pipeline.formats.iceberg.metadata import writable
from logicalrep.pipeline.formats.stored_table import ForeignTableError
from logicalrep.pipeline.limits import Limits
from logicalrep.pipeline.storage.storage import Storage, first_line
from logicalrep.postgres.silence import WatchedConnection
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.visible import without_secrets

_Result = TypeVar("_Result")

_TRIES_OF_GLUE = 3
_CLASS_OF_LOCATIONS = "write.py-location-provider.impl"
"""The table property that names a class for pyiceberg to call at a commit."""
_DESTINATION, _STORE_OPTION = "logicalrep.to", "logicalrep.store."
_LIBRARIES = ("pyiceberg", "sqlalchemy", "requests", "urllib3", "botocore", "psycopg", "sqlite3", "pydantic_core")
_PERMANENT = (BadRequestError, ForbiddenError, NoSuchPropertyException, OAuthError, UnauthorizedError)
"""The errors of a catalog that a retry cannot fix."""
_LONGEST_RETRY = 600.0
"""The most seconds before a retry that replicate grants a catalog."""
_CREDENTIAL = "credential"
"""The option from which pyiceberg gets tokens, and new tokens when the catalog refuses one."""
_VENDING = "Credential vending"
"""A text in the errors of catalogs that are asked for credentials and have none."""
_OF_STORES = (
    "s3.endpoint", "s3.region", "client.region", "s3.path-style-access", "s3.remote-signing-enabled",
    "gcs.service.host", "adls.blob-storage-authority", "adls.blob-storage-scheme",
)  # fmt: skip
"""The properties of stores, none of them a credential, that a catalog's configuration or a user may name."""
OWN_PROPERTIES = "logicalrep."
"""The beginning of the names of replicate's own properties."""


class CatalogFiles(FileIO):
    """The adapter for pyiceberg's catalogs to files of a destination."""

    def __init__(self, properties: dict[str, str]) -> None:
        super().__init__(properties)
        options = {
            name.removeprefix(_STORE_OPTION): value
            for name, value in properties.items()
            if name.startswith(_STORE_OPTION)
        }
        self._storage = _storage(properties[_DESTINATION], tuple(options.items()))

    def new_input(self, location: str) -> InputFile:
        return StorageFiles(self._storage).new_input(location)

    def new_output(self, location: str) -> OutputFile:
        return FileToStorage(location, self._storage, self._storage.path_of(location))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise NotImplementedError


@cache
def _storage(uri: str, options: tuple[tuple[str, str], ...]) -> Storage:
    """Return a destination, cached: each table and commit creates a CatalogFiles, and all share one store client."""
    return Storage(uri, dict(options))


def connect(settings: CatalogSettings, storage: Storage, *, creates: bool = False) -> CatalogOfFiles:
    """Connect to a catalog with tables of a destination.

    Args:
        settings: the catalog.
        storage: the destination.
        creates: whether to create the catalog's own tables in an empty SQL catalog.

    Raises:
        CatalogError: the catalog does not answer, or is empty.
        InvalidCatalogError: the catalog refuses the credentials, or a library for the catalog is not installed.
    """
    properties = {
        **settings.library_options,
        "py-io-impl": f"{CatalogFiles.__module__}.{CatalogFiles.__qualname__}",
        _DESTINATION: storage.uri,
        **{f"{_STORE_OPTION}{name}": value for name, value in storage.storage_options.items()},
    }
    configured = _configured(settings, properties)
    makers: dict[str, Callable[[], CatalogOfFiles]] = {
        "sqlite": lambda: _connect_sql(settings, configured, storage.limits, creates=creates),
        "postgresql": lambda: _connect_sql(settings, configured, storage.limits, creates=creates),
        "rest": lambda: connect_rest(settings, storage.limits, properties),
        "glue": lambda: _connect_glue(settings, configured, storage.limits),
    }
    catalog = ask(settings, makers[settings.kind])
    catalog.files = CatalogFiles(properties)
    return catalog


def connect_rest(
    settings: CatalogSettings, limits: Limits, properties: Mapping[str, str] = EMPTY_DICT
) -> _TimedRestCatalog:
    configured = _configured(settings, properties or settings.library_options)
    return _TimedRestCatalog(settings.name, limits, **configured | {"uri": settings.uri})


def _configured(settings: CatalogSettings, properties: Mapping[str, str]) -> dict[str, str]:
    return cast("dict[str, str]", merge_config(users_options(settings), dict(properties)))


def ask(settings: CatalogSettings, action: Callable[[], _Result]) -> _Result:
    try:
        return action()
    except Exception as error:
        if isinstance(error, LogicalRepError) or not is_catalog_error(error):
            raise
        raise catalog_error(settings, error) from None


def catalog_error(settings: CatalogSettings, error: Exception) -> CatalogError:
    text = f"the catalog {settings.shown}: {without_secrets(first_line(error), settings.secrets)}"
    # pyiceberg gets a new token once: if this token expires too before the catalog reads it, a retry gets another.
    is_renewed = isinstance(error, UnauthorizedError) and _CREDENTIAL in {**users_options(settings), **settings.options}
    if is_renewed or not isinstance(error, _PERMANENT):
        passing = CatalogError(text)
        passing.retry_seconds = _retry_seconds(error)
        return passing
    if OWN_PROPERTIES in text:
        text += (
            "; replicate needs its own properties: let the catalog allow properties whose names begin with "
            f"{OWN_PROPERTIES}, or use another catalog"
        )
    if _VENDING in text and settings.owns_tables:
        text += "; if the catalog hands out no credentials, add --catalog-option access-delegation=none"
    return InvalidCatalogError(text)


def _retry_seconds(error: Exception) -> float:
    """Return the seconds of an answer's header `Retry-After`, which has seconds or a time; 0 without the header."""
    cause = error.__cause__
    response = cause.response if isinstance(cause, HTTPError) else None
    text = "" if response is None else response.headers.get("Retry-After", "")
    try:
        seconds = float(text) if text.isdecimal() else parsedate_to_datetime(text).timestamp() - time.time()
    except ValueError:
        return 0.0
    return min(max(seconds, 0.0), _LONGEST_RETRY)


def is_catalog_error(error: BaseException) -> bool:
    """Return whether a catalog, or the connection to it, caused an error, and not a defect of replicate."""
    return isinstance(error, OSError | UnicodeDecodeError) or type(error).__module__.partition(".")[0] in _LIBRARIES


class CatalogOfFiles(Catalog):
    """A catalog whose files are a destination's.

    pyiceberg would import and call classes named by a table's properties or by a REST service: anybody who can write to
    the destination could run code.
    """

    files: FileIO = StorageFiles(Storage(os.devnull))

    @staticmethod
    def _write_metadata(metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:
        ToOutputFile.table_metadata(writable(metadata), io.new_output(metadata_path))

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        if _CLASS_OF_LOCATIONS in properties:
            raise ForeignTableError(
                f"the table with the metadata {location} has the property {_CLASS_OF_LOCATIONS}, which makes programs "
                "that commit to the table run a class: remove the property"
            )
        return self.files


class _TimedRestCatalog(CatalogOfFiles, RestCatalog):
    """A REST catalog with timeouts: its library would wait forever for a silent service."""

    def __init__(self, name: str, limits: Limits, **properties: str) -> None:
        self._timeout = limits.catalog_connect_seconds, limits.catalog_answer_seconds
        super().__init__(name, **properties)

    def _response_to_table(self, identifier_tuple: tuple[str, ...], table_response: TableResponse) -> Table:
        table = super()._response_to_table(identifier_tuple, table_response)
        # The library chooses credentials by the metadata's location, and keeps them from its callers.
        location = f"{table_response.metadata.location.rstrip('/')}/"
        vended = self._resolve_storage_credentials(table_response.storage_credentials, location)
        of_catalog = {name: value for name, value in self.properties.items() if name in _OF_STORES}
        table.config = {**of_catalog, **table_response.config, **vended}
        return table

    def _config_headers(self, session: Session) -> None:
        # The library calls this method before it asks for the first token, and mounts adapters of its own later.
        super()._config_headers(session)
        if self.properties.get(DELEGATION) == "none":
            # A catalog without credentials refuses requests that ask for credentials.
            del session.headers["X-Iceberg-Access-Delegation"]
        send = session.send

        def send_timed(request: PreparedRequest, **named: Any) -> Response:
            return send(request, **named | {"timeout": self._timeout})

        session.send = send_timed  # type: ignore[method-assign]


def _connect_sql(
    settings: CatalogSettings, properties: dict[str, str], limits: Limits, *, creates: bool
) -> CatalogOfFiles:
    _refuse_missing(settings, "sqlalchemy", "iceberg")
    # The other kinds of catalogs do not need this library.
    from pyiceberg.catalog.sql import SqlCatalog, SqlCatalogBaseTable
    from sqlalchemy import create_engine, make_url
    from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError
    from sqlalchemy.pool import NullPool

    already_exists = (OperationalError,) if settings.kind == "sqlite" else (IntegrityError, ProgrammingError)

    class OwnSqlCatalog(CatalogOfFiles, SqlCatalog):
        """An SQL catalog with connections that give up a silent server and are closed after each operation."""

        def __init__(self, name: str, **properties: str) -> None:
            MetastoreCatalog.__init__(self, name, **properties)
            if settings.kind == "sqlite":
                # SQLite would create the file.
                if not creates and not os.path.isfile(make_url(settings.uri).database or ""):
                    raise CatalogError(f"the catalog {settings.shown} does not exist")
                self.engine = create_engine(settings.uri, poolclass=NullPool)
            else:
                self.engine = create_engine("postgresql+psycopg://", creator=self._open, poolclass=NullPool)
            self._init_catalog()

        def create_tables(self) -> None:
            if not creates:
                raise CatalogError(f"the catalog {settings.shown} is empty: replicate has never used it")
            # Another process may create each table after this process has looked for it.
            for _ in SqlCatalogBaseTable.metadata.tables:
                with suppress(*already_exists):
                    super().create_tables()
                    return
            super().create_tables()

        def create_namespace(self, namespace: str | Identifier, properties: Properties = EMPTY_DICT) -> None:
            try:
                super().create_namespace(namespace, properties)
            except IntegrityError:
                # Another thread or process has created the namespace since pyiceberg looked for it.
                raise NamespaceAlreadyExistsError(f"the namespace {namespace} exists") from None

        @staticmethod
        def _open() -> WatchedConnection:
            connection = WatchedConnection.connect(_conninfo(settings.uri, limits))
            connection.patience = limits.catalog_answer_seconds
            return connection

    # Without `creates` no other option may change the catalog.
    fixed = {} if creates else {"schema_version": "v0", "init_catalog_tables": "true"}
    return OwnSqlCatalog(settings.name, **properties | fixed)


def _conninfo(uri: str, limits: Limits) -> str:
    return make_conninfo(
        uri,
        fallback_application_name="logicalrep catalog",
        connect_timeout=math.ceil(limits.catalog_connect_seconds),
        keepalives_idle=30,
        keepalives_interval=10,
        keepalives_count=3,
    )


def _connect_glue(settings: CatalogSettings, properties: dict[str, str], limits: Limits) -> CatalogOfFiles:
    _refuse_missing(settings, "boto3", "glue")
    # The other kinds of catalogs do not need these libraries.
    import botocore.config
    import botocore.session
    from pyiceberg.catalog.glue import GlueCatalog

    class OwnGlueCatalog(CatalogOfFiles, GlueCatalog):
        """AWS Glue as a catalog."""

        @staticmethod
        def _write_metadata_no_exist_check(metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:
            ToOutputFile.table_metadata(writable(metadata), io.new_output(metadata_path), overwrite=True)

    session = botocore.session.Session()
    session.set_default_client_config(
        botocore.config.Config(
            connect_timeout=limits.catalog_connect_seconds, read_timeout=limits.catalog_answer_seconds
        )
    )
    region = settings.uri.removeprefix("glue://").strip("/")
    glue_properties: dict[str, Any] = {"glue.max-retries": _TRIES_OF_GLUE, "botocore-session": session}
    if region:
        glue_properties["glue.region"] = region
    return OwnGlueCatalog(settings.name, **{**properties, **glue_properties})


def _refuse_missing(settings: CatalogSettings, library: str, extra: str) -> None:
    if find_missing([library]) is not None:
        raise InvalidCatalogError(
            f"the catalog {settings.shown} needs {library}, which is not installed: {installing(extra)}"
        )
