"""The page of the Python API, from the docstrings of the public names."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import sys
import textwrap
import types
from typing import NewType

MODULES = (
    "logicalrep",
    "logicalrep.captures",
    "logicalrep.transactions",
    "logicalrep.arrow",
    "logicalrep.postgres",
    "logicalrep.reader",
    "logicalrep.spark",
    "logicalrep.spark.frames",
    "logicalrep.values",
)
"""The modules whose `__all__` is public."""

_WIDTH = 88
_LIST = re.compile(r", (?=[\w*]+(?::|,|=|\)))")
"""The commas between a function's parameters."""

_INTRODUCTION = """# The Python API

Every public name with its docstring. The messages of each protocol version, `v1` to `v4`, are in the reference of the
protocol. A name's module says which extra it needs.
"""


def python_api() -> str:
    """Return the page as Markdown."""
    parts = [_INTRODUCTION]
    for name in MODULES:
        module = importlib.import_module(name)
        parts.append(f"## {name}\n\n{_text(inspect.getdoc(module))}")
        for member in sorted(module.__all__, key=str.lower):
            value = getattr(module, member)
            if not isinstance(value, types.ModuleType) and not member.startswith("__"):
                parts.append(_entry(name, member, value))
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _entry(module: str, name: str, value: object) -> str:
    title = f"### {module}.{name}"
    if isinstance(value, NewType):
        # Its own docstring is that of all such types; what the name is stands behind it in its module.
        source = inspect.getsource(sys.modules[value.__module__])
        (text,) = re.findall(rf'^{name} = NewType\(.*\)\n"""(.*)"""$', source, re.MULTILINE)
        return f'{title}\n\n```python\n{name} = NewType("{name}", {value.__supertype__.__name__})\n```\n\n{text}'
    if not inspect.isclass(value) and not callable(value):
        return f"{title}\n\n```python\n{name} = {value!r}\n```"
    lines = [title, f"```python\n{_signature(name, value)}\n```", _text(inspect.getdoc(value))]
    if inspect.isclass(value):
        for method_name, method in vars(value).items():
            text = inspect.getdoc(method)
            if method_name.startswith("_") or not text or isinstance(value, enum.EnumMeta):
                continue
            if inspect.isfunction(method) or isinstance(method, classmethod | staticmethod):
                lines.append(f"**`{_signature(f'.{method_name}', getattr(value, method_name))}`**")
            elif isinstance(method, property):
                lines.append(f"**`.{method_name}`**")
            else:
                continue
            lines.append(_text(text))
    return "\n\n".join(lines)


def _signature(name: str, value: object) -> str:
    assert callable(value)
    try:
        signature = str(inspect.signature(value))
    except ValueError:
        signature = "(…)"
    # Python prints the address of a default that has no name of its own.
    signature = re.sub(r"<([\w.]+) object at 0x[0-9a-f]+>", r"\1", signature)
    text = name + signature.replace("self, ", "").replace("(self)", "()").replace("'", "")
    return text if len(text) <= _WIDTH else _LIST.sub(",\n    ", text).replace("(", "(\n    ", 1)


def _text(docstring: str | None) -> str:
    """Return a docstring as Markdown: its lists stay lists, its indented examples become code."""
    lines = []
    for block in re.split(r"\n\n+", docstring or ""):
        code = textwrap.dedent(block)
        if block.startswith("    ") and code:
            lines.append(f"```python\n{code}\n```")
        elif match := re.fullmatch(r"(Args|Raises|Returns|Yields):\n((?:    .*\n?)+)", block):
            items = re.sub(r"^ {4}(?! )", "- ", match[2], flags=re.MULTILINE)
            lines.append(f"{match[1]}:\n\n{re.sub(r'^ {8}', '  ', items, flags=re.MULTILINE)}")
        elif match := re.fullmatch(r"(Examples?:)\n((?:    .*\n?|\n)+)", block):
            lines.append(f"{match[1]}\n\n```python\n{textwrap.dedent(match[2]).rstrip()}\n```")
        else:
            lines.append(block)
    return "\n\n".join(lines)
