"""The largest modules, folders and signatures: what a reviewer reads for second purposes. `make shapes` prints it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.conftest import ROOT
from tests.contracts.modules import MODULES

LARGEST = 15
"""The number of lines of each list."""


def lines_of_modules(modules: Mapping[str, Path]) -> Counter[str]:
    """Return the number of lines of each module."""
    return Counter({name: len(path.read_text("utf-8").splitlines()) for name, path in modules.items()})


def modules_of_folders(modules: Mapping[str, Path]) -> Counter[str]:
    """Return the number of modules of each folder, without its `__init__` and `__main__`."""
    paths = (path for path in modules.values() if path.name not in ("__init__.py", "__main__.py"))
    return Counter(path.parent.relative_to(ROOT).as_posix() for path in paths)


def parameters_of_functions(modules: Mapping[str, Path]) -> Counter[str]:
    """Return the number of parameters of each function, and the number of fields of each dataclass."""
    return Counter(
        {
            f"{module}.{signature}": count
            for module, path in modules.items()
            for signature, count in _signatures(ast.parse(path.read_text("utf-8")))
        }
    )


def _signatures(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            if any("dataclass" in ast.unparse(decorator) for decorator in child.decorator_list):
                yield f"{prefix}{child.name}", sum(isinstance(field, ast.AnnAssign) for field in child.body)
            yield from _signatures(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef):
            parameters = [*child.args.posonlyargs, *child.args.args, *child.args.kwonlyargs]
            yield f"{prefix}{child.name}", sum(parameter.arg not in ("self", "cls") for parameter in parameters)


def main() -> None:
    """Print the largest of each kind."""
    modules = {name: path for name, path in MODULES.items() if not name.startswith("logicalrep_protocol")}
    lists = {
        "lines of modules": lines_of_modules(modules),
        "modules of folders": modules_of_folders(modules),
        "parameters of functions, and fields of dataclasses": parameters_of_functions(modules),
    }
    for title, counts in lists.items():
        print(f"{title}:")
        for name, count in counts.most_common(LARGEST):
            print(f"{count:6} {name}")


if __name__ == "__main__":
    main()
