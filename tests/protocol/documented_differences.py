"""The differences of a generated package from the documentation's tables, as `documented.py` has them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from tests.protocol.documented import PAGES, Row, Table, tables
from tests.protocol.struct_reading import describe


def tables_of(module: str) -> dict[str, Table]:
    """Return the tables of a module's version by the names of classes."""
    page, version = PAGES[module]
    return {table.name: table for table in tables(page) if table.since <= version}


def rows_of(table: Table, version: int) -> list[Row]:
    """Return a table's rows in one version."""
    return [row for row in table.rows if row.since <= version and (row.until is None or version <= row.until)]


def in_struct(row: Row) -> tuple[str, str, frozenset[str]]:
    """Return what a Struct shows of a row: a constant length is a constant."""
    is_constant = " as " in row.holds
    return row.name, row.holds, frozenset(row.remarks - ({"length of message"} if is_constant else set()))


def module_of(package: ModuleType, name: str) -> ModuleType:
    """Return a module of a package, `pgwire.v3_2` for example."""
    return importlib.import_module(f"{package.__name__}.{name}")


def classes_of(module: ModuleType) -> dict[str, Any]:
    """Return the classes of a module's messages and parts. AnyMessage is one of them if there is one message."""
    names = [name for name in module.__all__ if name != "AnyMessage"]
    return {name: getattr(module, name) for name in names if hasattr(getattr(module, name), "struct")}


def differences(package: ModuleType, modules: Iterable[str] = PAGES) -> set[str]:
    """Every row, as `v1.Begin.xid`, that Structs of the modules lack, have too much, elsewhere or otherwise."""
    wrong_rows: set[str] = set()
    for name in modules:
        version = PAGES[name][1]
        module = module_of(package, name)
        documented = tables_of(name)
        classes = classes_of(module)
        wrong_rows |= {f"{name}.{key}" for key in classes.keys() ^ documented.keys()}
        for key in classes.keys() & documented.keys():
            wanted = [in_struct(row) for row in rows_of(documented[key], version)]
            try:
                described = describe(classes[key], module)
            except AssertionError:  # a Struct of a form that no row of the tables has
                wrong_rows.add(f"{name}.{key}")
                continue
            wrong_rows |= {f"{name}.{key}.{row[0]}" for row in set(wanted) ^ set(described)}
            order = [row[0] for row in wanted if row in described], [row[0] for row in described if row in wanted]
            wrong_rows |= {f"{name}.{key}.{a}" for a, b in zip(*order, strict=True) if a != b}
    return wrong_rows
