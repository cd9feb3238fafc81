"""Hypothesis strategies of the messages of every version, for tests of programs that read or write them.

The values of each field are within its rules: legal characters and numbers, texts that the encoding has, both of the
attributes that come together or neither. Import needs Hypothesis.

Generated from the spec by `python -m codegen regen`; do not edit.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from logicalrep_protocol import copy_binary, v1, v2, v3, v4, walsender
from logicalrep_protocol.basebackup import v1 as basebackup_v1
from logicalrep_protocol.basebackup.layouts import BASEBACKUP
from logicalrep_protocol.layouts import COPY_BINARY, LOGICALREP, WALSENDER
from logicalrep_protocol.pgwire import v3_0 as pgwire_v3_0
from logicalrep_protocol.pgwire import v3_2 as pgwire_v3_2
from logicalrep_protocol.pgwire.layouts import PGWIRE
from logicalrep_runtime import strategies
from logicalrep_runtime.layout import ProtocolLayout

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["instances", "messages"]

_Class = TypeVar("_Class")

_VERSIONS: dict[ModuleType, tuple[ProtocolLayout, int]] = {
    basebackup_v1: (BASEBACKUP, 1),
    copy_binary: (COPY_BINARY, 1),
    v1: (LOGICALREP, 1),
    v2: (LOGICALREP, 2),
    v3: (LOGICALREP, 3),
    v4: (LOGICALREP, 4),
    pgwire_v3_0: (PGWIRE, 1),
    pgwire_v3_2: (PGWIRE, 2),
    walsender: (WALSENDER, 1),
}


def messages(
    module: ModuleType, *, sender: Literal["server", "client"] = "server", encoding: str = "utf-8", **facts: bool | str
) -> SearchStrategy[Any]:
    """Return a strategy of the messages that a module's `parse` accepts with the same arguments.

    Raises TypeError for another module or an unknown fact, EncodingError for an unknown encoding, and ValueError if
    the sender has no message.

    Example:
        >>> @given(testing.messages(v4, streaming=True))
        ... def test_my_reader(message): ...
    """
    protocol, version = _version(module)
    return strategies.messages(protocol, version, module, sender, encoding, facts)


def instances(
    module: ModuleType, class_: type[_Class], *, encoding: str = "utf-8", **facts: bool | str
) -> SearchStrategy[_Class]:
    """Return a strategy of the instances of a message's or a part's class, such as `v4.Insert` or `v4.Column`.

    `module` is the version's. Raises as `messages`, and TypeError for another class.
    """
    protocol, version = _version(module)
    return strategies.instances(protocol, version, module, class_, encoding, facts)


def _version(module: ModuleType) -> tuple[ProtocolLayout, int]:
    if module not in _VERSIONS:
        names = ", ".join(sorted(version.__name__ for version in _VERSIONS))
        raise TypeError(f"{module!r} is no version's module: expected one of {names}")
    return _VERSIONS[module]
