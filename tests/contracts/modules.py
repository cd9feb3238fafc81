"""The modules of the packages and of the generator."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.conftest import ROOT

SOURCES = {"src": ["logicalrep_runtime", "logicalrep"], "generated": ["logicalrep_protocol"], ".": ["codegen"]}


def _modules() -> dict[str, Path]:
    """Every module of ours by its name."""
    modules = {}
    for folder, packages in SOURCES.items():
        for package in packages:
            for path in sorted((ROOT / folder / package).rglob("*.py")):
                name = ".".join(path.relative_to(ROOT / folder).with_suffix("").parts)
                modules[name.removesuffix(".__init__")] = path
    return modules


MODULES = _modules()


def imports_of(module: str, path: Path) -> Iterator[str]:
    """What a module imports, anywhere in it: modules of ours whole, of others the top-level name."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name if alias.name in MODULES else alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
            start = ".".join(base[: len(base) - node.level + 1]) if node.level else ""
            source = ".".join(filter(None, (start, node.module)))
            for alias in node.names:
                whole = f"{source}.{alias.name}"
                if whole in MODULES:
                    yield whole
                else:
                    yield source if source in MODULES else source.partition(".")[0]


@functools.cache
def imported_names() -> Mapping[str, set[str]]:
    """Return the names that each module imports, as `imports_of` has them."""
    return {module: set(imports_of(module, path)) for module, path in MODULES.items()}
