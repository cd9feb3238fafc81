"""Constructors for decoders, which have nothing to check and many objects to make.

A frozen dataclass sets each attribute by name through `object.__setattr__`; setting the slots themselves takes less
than half the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def maker(cls: type[T]) -> Callable[..., T]:
    """A function that makes an instance of a slots dataclass from its attributes in their order."""
    names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    globals_: dict[str, Any] = {"_class": cls, "_new": object.__new__}
    lines = [f"def make({', '.join(names)}):", "    _self = _new(_class)"]
    for name in names:
        globals_[f"_set_{name}"] = getattr(cls, name).__set__
        lines.append(f"    _set_{name}(_self, {name})")
    lines.append("    return _self")
    exec("\n".join(lines), globals_)
    make: Callable[..., T] = globals_["make"]
    return make
