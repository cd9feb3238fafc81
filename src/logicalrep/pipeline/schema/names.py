from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from logicalrep.transactions.table_names import TableName

_ENCODED = re.compile(
    r"[/\\\x00-\x1f\x7f]|^\.|[%~](?=[0-9A-Fa-f]{2})|^_(?=(?:logicalrep|delta_log)$)|~(?=(?i:history|changes)$)"
)
_REFUSED = re.compile(r"[ ,;{}()\n\t=]")


def table_folder(table: TableName, taken: Collection[str] = ()) -> str:
    """Return a table's folder: schema and name, with some characters as `~` and two hexadecimal digits for each byte.

    - slashes, control characters, a leading dot, and a `%` or `~` that would read as a code;
    - the `_` of `_delta_log` and `_logicalrep`, and the `~` before `history` or `changes` at the end of a name;
    - capitals, if the name differs from a folder in `taken` only in case.

    A code never begins with `%`: delta-rs and its users take `a%2Fb` in a path for `a/b`, another folder.
    """
    schema, name = _encoded(table.schema), _encoded(table.name)
    schemas = {other.partition("/")[0] for other in taken}
    # Tables of a schema share a folder, unless it is the folder of another schema.
    if schema not in schemas and (_differs_in_case(schema, schemas) or _with_encoded_capitals(schema) in schemas):
        schema = _with_encoded_capitals(schema)
    if _differs_in_case(f"{schema}/{name}", taken):
        name = _with_encoded_capitals(name)
    if _differs_in_case(f"{schema}/{name}", [other for other in taken if not other.startswith(f"{schema}/")]):
        schema = _with_encoded_capitals(schema)
    return f"{schema}/{name}"


def companion_folder(folder: str, companion: str) -> str:
    """Return a name that no table has, as `table_folder` encodes such a `~`."""
    return f"{folder}~{companion}"


def _encoded(name: str) -> str:
    return _ENCODED.sub(lambda match: _code(match[0]), name)


def _differs_in_case(name: str, names: Collection[str]) -> bool:
    return any(name != other and name.casefold() == other.casefold() for other in names)


def _with_encoded_capitals(name: str) -> str:
    return re.sub(r"[^\W\d_]", lambda match: _code(match[0]) if match[0] != match[0].lower() else match[0], name)


def _code(character: str) -> str:
    return "".join(f"~{byte:02X}" for byte in character.encode())


def column_names(names: Sequence[str], refused: str = "", reserved: Collection[str] = ()) -> dict[str, str]:
    """Return the stored names: ` ,;{}()=`, tabs, line breaks and the characters in `refused` become `_`.

    A name that is taken or reserved, in any case, gets `_2`, `_3` and so on at its end.

    Example:
        >>> column_names(["a.b", "_file"], ".", ["_file"])
        {'a.b': 'a_b', '_file': '_file_2'}
    """
    stored_names: dict[str, str] = {}
    taken = {name.casefold() for name in reserved}
    plain_names = {name: _REFUSED.sub("_", name).translate(dict.fromkeys(map(ord, refused), "_")) for name in names}
    # Names that stay come first, so that no changed name takes them.
    for name in sorted(names, key=lambda name: plain_names[name] != name or name.casefold() in taken):
        stored_names[name] = _free(plain_names[name], taken)
    return {name: stored_names[name] for name in names}


def text_names(names: Collection[str], taken: Collection[str]) -> dict[str, str]:
    """Return the name of each column's text column, such as `at_text`, or `at_text_2` if it is taken."""
    folded = {name.casefold() for name in taken}
    return {name: _free(f"{name}_text", folded) for name in names}


def _free(base: str, taken: set[str]) -> str:
    """Add a free name to `taken`, and return it."""
    chosen, number = base, 2
    while chosen.casefold() in taken:
        chosen = f"{base}_{number}"
        number += 1
    taken.add(chosen.casefold())
    return chosen
