"""The options of a catalog in the user's pyiceberg configuration."""

from __future__ import annotations

import os
from typing import Any

import yaml
from pyiceberg.utils.config import Config

from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.formats.catalog_settings import CatalogSettings, shown_uri

_FILE = ".pyiceberg.yaml"


class _UsersConfig(Config):
    """pyiceberg's configuration from environment variables and user files, but not from the current folder."""

    @staticmethod
    def _from_configuration_files() -> Any:
        for folder in filter(None, (os.environ.get("PYICEBERG_HOME"), os.path.expanduser("~"))):
            path = os.path.join(folder, _FILE)
            if os.path.isfile(path):
                try:
                    with open(path, encoding="utf-8") as file:
                        # pyiceberg reads all values as texts.
                        return _in_small_letters(yaml.load(file, Loader=yaml.BaseLoader))
                except (OSError, ValueError, yaml.YAMLError) as error:
                    raise OptionError(f"pyiceberg's configuration {path} cannot be read: {error}") from None
        return None


def users_options(settings: CatalogSettings) -> dict[str, Any]:
    """Return the options, such as a token, that the user's configuration has for a catalog of this name.

    If the configured catalog has another URI, return no options: its token must not reach this catalog.
    """
    options: dict[str, Any] = dict(_UsersConfig().get_catalog_config(settings.name) or {})
    uri = options.get("uri")
    is_catalog_error = uri is None or shown_uri(str(uri)).rstrip("/") == settings.shown.rstrip("/")
    return options if is_catalog_error else {}


def _in_small_letters(value: Any) -> Any:
    if isinstance(value, dict):
        return {name.lower(): _in_small_letters(content) for name, content in value.items()}
    return value
