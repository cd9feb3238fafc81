"""Constructors take each attribute by its keyword, and each bit of a field of flags by its own."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

import pytest

from logicalrep import Lsn, v1, walsender
from logicalrep_protocol import layouts
from logicalrep_protocol.v1 import Column
from logicalrep_runtime.operations import Operations, Take
from tests.protocol.agreement import VERSIONS

COLUMN: dict[str, Any] = {"name": "a", "type_id": 23, "type_modifier": -1}


def _rows() -> dict[str, Operations]:
    """The fields of every message and part by its class."""
    rows = {}
    for protocol in (layouts.LOGICALREP, layouts.WALSENDER):
        described: tuple[Any, ...] = (*protocol.messages, *protocol.parts.values())
        for layout in described:
            rows["".join(word[0].upper() + word[1:] for word in layout.name.split())] = layout.fields
    return rows


def _classes() -> list[type]:
    modules = [*VERSIONS.values(), walsender]
    classes: dict[Any, None] = {getattr(module, name): None for module in modules for name in module.__all__}
    return [item for item in classes if isinstance(item, type) and item.__name__ in _rows()]


@pytest.mark.parametrize("owner", _classes(), ids=lambda owner: f"{owner.__module__}.{owner.__name__}")
def test_a_constructor_has_a_keyword_for_each_attribute_and_each_bit(owner: Any) -> None:
    bits = {
        operation.name: list(operation.flags.values())
        for operation in _rows()[owner.__name__]
        if isinstance(operation, Take)
    }
    wanted = [name for slot in owner.__slots__ for name in (slot, *bits.get(slot, []))]
    parameters = inspect.signature(owner).parameters
    assert list(parameters) == wanted
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values())
    annotations = get_type_hints(owner)
    for slot in owner.__slots__:
        may_be_absent = type(None) in getattr(annotations[slot], "__args__", ()) or bits.get(slot)
        assert (parameters[slot].default is None) == bool(may_be_absent)


def test_bits_can_be_said_by_name() -> None:
    assert v1.Truncate(cascade=True, relation_ids=()) == v1.Truncate(options=1, relation_ids=())
    assert v1.Truncate(cascade=True, restart_identity=True, relation_ids=()).build() == b"T\0\0\0\0\3"
    assert v1.Truncate(cascade=False, relation_ids=()).options == 0
    assert v1.Truncate(relation_ids=()).options == 0
    assert Column(key=True, **COLUMN) == Column(flags=1, **COLUMN)
    assert v1.Message(transactional=True, message_lsn=Lsn(1), prefix="", content=b"").flags == 1


def test_bits_may_stand_beside_the_flags_that_have_them() -> None:
    assert v1.Truncate(options=0xFD, cascade=True, restart_identity=False, relation_ids=()).options == 0xFD


@pytest.mark.parametrize(
    ("flags", "bits", "text"),
    [
        (2, {"cascade": True}, "options=2 and cascade=True contradict each other"),
        (3, {"restart_identity": False}, "options=3 and restart_identity=False contradict each other"),
        (0, {"cascade": False, "restart_identity": True}, "options=0 and restart_identity=True contradict each other"),
    ],
)
def test_bits_must_not_contradict_the_flags(flags: int, bits: dict[str, bool], text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}$"):
        v1.Truncate(options=flags, relation_ids=(), **bits)


def test_unknown_and_missing_keywords_are_errors() -> None:
    with pytest.raises(TypeError, match="relation_ids"):
        v1.Truncate(cascade=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="restart"):
        v1.Truncate(relation_ids=(), restart=True)  # type: ignore[call-arg]
