"""The settings of a catalog, and the names of tables in the catalog.

An Iceberg catalog maps a table's name to the table's last metadata, and Unity Catalog maps the name to the folder of a
Delta table, so that readers need no path.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.schema.table_formats import FORMATS, FormatName
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.visible import secrets_of

CatalogKind = Literal["sqlite", "postgresql", "rest", "glue", "unity"]
_KINDS: Mapping[str, CatalogKind] = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "http": "rest",
    "https": "rest",
    "glue": "glue",
    "unity+http": "unity",
    "unity+https": "unity",
}
DELEGATION = "access-delegation"
"""The option that says who gives access to the files of a REST catalog's tables."""
_DELEGATIONS = ("vended-credentials", "none")
_OWN = ("name", "allow_http")
"""The options that replicate does not pass to the catalog's library."""
_OF_UNITY = ("token", "allow_http")
"""All options of Unity Catalog."""
_LONGEST_WORD = 5
"""Length of the longest parameter that errors may quote, such as a port; longer values may be secrets."""
_LONGEST_NAME = 255
"""Length of the longest namespace or table name that Glue and SQL catalogs store."""


class CatalogNameError(LogicalRepError, ValueError):
    """Tables with equal names in the catalog, or with a name that is too long."""

    code = "CATALOG_NAME"


@dataclass(frozen=True)
class CatalogSettings:
    """A catalog's URI and options. Raises OptionError for an invalid URI.

    Example:
        >>> CatalogSettings("postgresql://lake:secret@db/catalog")
        CatalogSettings('postgresql://db/catalog')
    """

    uri: str = field(repr=False)
    """`sqlite:///FILE`, `postgresql://…`, `https://…` for a REST catalog, `glue://` with an optional region, or
    `unity+https://HOST/CATALOG`."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """pyiceberg's options for an Iceberg catalog, and `name`; or the options of Unity Catalog; never shown."""
    does_upkeep: bool = True
    """Whether replicate, and not the catalog's service, merges files and removes old snapshots and files."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.uri)
        if parts.scheme not in _KINDS:
            raise OptionError(
                "option 'catalog' is not a catalog's URI: write sqlite:///FILE, postgresql://HOST/DATABASE, https://… "
                "for a REST catalog, or glue:// or glue://REGION; and for Delta tables unity+https://HOST/CATALOG"
            )
        is_local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if parts.scheme.endswith("http") and not is_local and self.options.get("allow_http") != "true":
            raise OptionError(
                f"option 'catalog' is {self.shown}, which is not encrypted: write {parts.scheme}s://, or add "
                "--catalog-option allow_http=true to allow that"
            )
        if self.kind == "unity":
            self._refuse_invalid_unity()

        if (delegation := self.options.get(DELEGATION, "none")) not in _DELEGATIONS:
            raise OptionError(
                f"option 'catalog_options' has access-delegation={delegation}: replicate supports "
                f"{' and '.join(_DELEGATIONS)}"
            )

    def _refuse_invalid_unity(self) -> None:
        parts = urlsplit(self.uri)
        is_address = re.fullmatch(r"(\[[^]]+\]|[^@:\s]+)(:\d+)?", parts.netloc)
        if not is_address or not self.name_in_unity or parts.query or parts.fragment:
            raise OptionError(
                f"option 'catalog' is {self.shown}, which is not a catalog of Unity Catalog: write "
                "unity+https://HOST/CATALOG, and pass a token by --catalog-option token=TOKEN"
            )
        if unknown := sorted(self.options.keys() - {*_OF_UNITY}):
            raise OptionError(
                f"option 'catalog_options' has {', '.join(unknown)}: the options of Unity Catalog are "
                f"{' and '.join(_OF_UNITY)}"
            )
        # An HTTP library would quote the token in its own error.
        if not re.fullmatch(r"[!-~]*", self.options.get("token", "")):
            raise OptionError("option 'catalog_options' has a token with characters that a token cannot have")

    def refuse_other_format(self, name: FormatName) -> None:
        """Raise OptionError if tables in a format cannot be in the catalog."""
        if self.only_names_tables == FORMATS[name].has_catalogs:
            raise OptionError(
                f"option 'catalog' is {self.shown}, and the tables are {name} tables: unity+https://HOST/CATALOG is "
                "for Delta tables, and all other catalogs are for Iceberg tables, with --format iceberg"
            )
        if self.only_names_tables and not self.does_upkeep:
            raise OptionError(
                f"option 'upkeep' is none, but the catalog {self.shown} does no upkeep: remove the option"
            )

    def __repr__(self) -> str:
        return f"CatalogSettings({self.shown!r})"

    @classmethod
    def of(cls, uri: str | None, options: Mapping[str, str] | None, *, does_upkeep: bool = True) -> Self | None:
        return None if uri is None else cls(uri, options or {}, does_upkeep)

    @property
    def kind(self) -> CatalogKind:
        return _KINDS[urlsplit(self.uri).scheme]

    @property
    def only_names_tables(self) -> bool:
        """Whether the catalog names the folders of tables, and has no part in commits."""
        return self.kind == "unity"

    @property
    def owns_tables(self) -> bool:
        """Whether the catalog chooses the locations of tables, and gives access to them."""
        return self.kind == "rest" and self.options.get(DELEGATION) != "none"

    @property
    def name(self) -> str:
        """The catalog's name: SQL catalogs store it with each table, so readers use the same name."""
        return self.options.get("name", "default")

    @property
    def server_of_unity(self) -> str:
        """The URL of the server of Unity Catalog, without a slash at its end."""
        return self.uri.removeprefix("unity+").rstrip("/").rpartition("/")[0]

    @property
    def name_in_unity(self) -> str:
        """The name of the catalog at the server of Unity Catalog; empty if the URI has none."""
        return unquote(urlsplit(self.uri).path.rstrip("/").rpartition("/")[2])

    @property
    def library_options(self) -> dict[str, str]:
        return {name: value for name, value in self.options.items() if name not in _OWN}

    @property
    def secrets(self) -> list[str]:
        """The texts that no error may quote: the password, also percent-decoded, the parameters and secret options."""
        parts = urlsplit(self.uri)
        values = [value for _, value in parse_qsl(parts.query) if len(value) > _LONGEST_WORD]
        password = parts.password or ""
        return [text for text in (password, unquote(password), parts.query, *values, *secrets_of(self.options)) if text]

    @property
    def shown(self) -> str:
        return shown_uri(self.uri)


def catalog_of_tables(settings: CatalogSettings | None) -> str | None:
    """Return the catalog that a destination belongs to for ever; None without a catalog, and for Unity Catalog."""
    return None if settings is None or settings.only_names_tables else settings.shown


def shown_uri(uri: str) -> str:
    """Return a catalog's URI without a user, a password or parameters."""
    return re.sub("//[^/]*@", "//", uri.partition("?")[0].partition("#")[0], count=1)


def catalog_name(folder: str) -> tuple[str, str]:
    """Return the namespace and the name in a catalog of the table in a folder.

    Both are parts of the folder in lower case, with `_` for each character that is no letter, digit or `_`: Glue and
    Athena allow only lower case, and other catalogs split names at dots.

    Example:
        >>> catalog_name("Shop.EU/Order lines~history")
        ('shop_eu', 'order_lines_history')
    """
    schema, _, table = folder.partition("/")
    return _in_catalog(schema), _in_catalog(table)


def _in_catalog(name: str) -> str:
    return re.sub(r"\W", "_", name.lower())


def refuse_same_names(folders: Collection[str]) -> None:
    """Raise CatalogNameError if two tables would have one name in a catalog, or if a name is too long."""
    by_name: dict[tuple[str, str], str] = {}
    for folder in folders:
        name = catalog_name(folder)
        other = by_name.setdefault(name, folder)
        if other != folder:
            raise CatalogNameError(
                f"the tables {other} and {folder} would both be {'.'.join(name)} in the catalog: rename a table, leave "
                "it out with --exclude-tables, or replicate it to another destination with another catalog"
            )
        if max(map(len, name)) > _LONGEST_NAME:
            raise CatalogNameError(
                f"the name {'.'.join(name)} is longer than the {_LONGEST_NAME} characters that catalogs store"
            )
