"""The modules of the packages and of the generator."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import ROOT

SOURCES = {"src": ["logicalrep_runtime", "logicalrep"], "generated": ["logicalrep_protocol"], ".": ["codegen"]}


def _modules() -> dict[str, Path]:
    """Every module of ours by its name."""
    found = {}
    for folder, packages in SOURCES.items():
        for package in packages:
            for path in sorted((ROOT / folder / package).rglob("*.py")):
                name = ".".join(path.relative_to(ROOT / folder).with_suffix("").parts)
                found[name.removesuffix(".__init__")] = path
    return found


MODULES = _modules()
