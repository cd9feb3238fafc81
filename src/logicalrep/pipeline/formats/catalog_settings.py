"""The settings of an Iceberg catalog, and the names of tables in the catalog.

A catalog maps a table's name to the table's last metadata, so that readers need no path.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from logicalrep.options.kinds import OptionError
from logicalrep_runtime.errors import LogicalRepError
from logicalrep_runtime.visible import secrets_of

_KINDS: Mapping[str, Literal["sqlite", "postgresql", "rest", "glue"]] = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "http": "rest",
    "https": "rest",
    "glue": "glue",
}
DELEGATION = "access-delegation"
"""The option that says who gives access to the files of a REST catalog's tables."""
_DELEGATIONS = ("vended-credentials", "none")
_OWN = ("name", "allow_http")
"""The options that replicate does not pass to the catalog's library."""
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
    """`sqlite:///FILE`, `postgresql://…`, `https://…` for a REST catalog, or `glue://` with an optional region."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """pyiceberg's options for the catalog, and `name`; never shown."""
    does_upkeep: bool = True
    """Whether replicate, and not the catalog's service, merges files and removes old snapshots and files."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.uri)
        if parts.scheme not in _KINDS:
            raise OptionError(
                "option 'catalog' is not a catalog's URI: write sqlite:///FILE, postgresql://HOST/DATABASE, https://… "
                "for a REST catalog, or glue:// or glue://REGION"
            )
        is_local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if parts.scheme == "http" and not is_local and self.options.get("allow_http") != "true":
            raise OptionError(
                f"option 'catalog' is {self.shown}, which is not encrypted: write https://, or add --catalog-option "
                "allow_http=true to allow that"
            )

        if (delegation := self.options.get(DELEGATION, "none")) not in _DELEGATIONS:
            raise OptionError(
                f"option 'catalog_options' has access-delegation={delegation}: replicate supports "
                f"{' and '.join(_DELEGATIONS)}"
            )

    def __repr__(self) -> str:
        return f"CatalogSettings({self.shown!r})"

    @classmethod
    def of(cls, uri: str | None, options: Mapping[str, str] | None, *, does_upkeep: bool = True) -> Self | None:
        return None if uri is None else cls(uri, options or {}, does_upkeep)

    @property
    def kind(self) -> Literal["sqlite", "postgresql", "rest", "glue"]:
        return _KINDS[urlsplit(self.uri).scheme]

    @property
    def owns_tables(self) -> bool:
        """Whether the catalog chooses the locations of tables, and gives access to them."""
        return self.kind == "rest" and self.options.get(DELEGATION) != "none"

    @property
    def name(self) -> str:
        """The catalog's name: SQL catalogs store it with each table, so readers use the same name."""
        return self.options.get("name", "default")

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
