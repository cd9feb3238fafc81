"""`logicalrep_protocol.testing`: its messages are all that `parse` accepts, and its page is true."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from logicalrep_protocol import basebackup, copy_binary, testing, v1, v2, v3, v4, walsender
from logicalrep_protocol.basebackup.layouts import BASEBACKUP
from logicalrep_protocol.layouts import COPY_BINARY, LOGICALREP, WALSENDER
from logicalrep_protocol.pgwire import v3_0, v3_2
from logicalrep_protocol.pgwire.layouts import PGWIRE
from logicalrep_runtime.errors import EncodingError
from tests.documents import example

pytestmark = pytest.mark.slow

VERSIONS: dict[Any, tuple[Any, int]] = {
    v1: (LOGICALREP, 1), v2: (LOGICALREP, 2), v3: (LOGICALREP, 3), v4: (LOGICALREP, 4), walsender: (WALSENDER, 1),
    v3_0: (PGWIRE, 1), v3_2: (PGWIRE, 2), basebackup.v1: (BASEBACKUP, 1), copy_binary: (COPY_BINARY, 1),
}  # fmt: skip
"""Each version's module, with its layouts and number."""


def _versions() -> list[Any]:
    """The newest version of each protocol, and the others as thorough tests."""
    newest = {protocol.name: module for module, (protocol, _) in VERSIONS.items()}.values()
    return [
        pytest.param(
            module,
            id=module.__name__.removeprefix("logicalrep_protocol."),
            marks=() if module in newest else pytest.mark.thorough,
        )
        for module in VERSIONS
    ]


@pytest.mark.parametrize("module", _versions())
def test_every_message_of_a_version_is_drawn_and_parsed_in_its_session(module: Any) -> None:
    protocol, version = VERSIONS[module]
    layouts = [layout for layout in protocol.messages if layout.since <= version]
    facts = {fact: protocol.values.get(fact, (False, True)) for fact in protocol.parse_arguments if fact != "encoding"}
    seen = set[type]()
    for sender, values in product(("server", "client"), product(*facts.values())):
        arguments: dict[str, Any] = dict(zip(facts, values, strict=True))
        if not any(layout.sender in (sender, "both") for layout in layouts):
            with pytest.raises(ValueError, match=f"the {sender} sends no message"):
                testing.messages(module, sender=sender, **arguments)
            continue

        seen |= _parsed(module, sender, arguments, len({layout.sender for layout in protocol.messages}) > 1)
    for layout in layouts:
        class_ = getattr(module, layout.class_name)
        if class_ not in seen:
            _check_instances(module, class_)


def _parsed(module: Any, sender: Any, facts: dict[str, Any], is_two_way: bool) -> set[type]:
    """Parse messages of a session; return their classes."""
    classes = set()

    @settings(max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(testing.messages(module, sender=sender, **facts))
    def check(message: Any) -> None:
        own = {"sender": sender} if is_two_way else {}
        assert module.parse(message.build(), **facts, **own) == message
        classes.add(type(message))

    check()
    return classes


def _check_instances(module: Any, class_: Any) -> None:
    """A message that was not drawn by chance."""

    @settings(max_examples=5, deadline=None, derandomize=True, database=None)
    @given(testing.instances(module, class_))
    def check(message: Any) -> None:
        assert type(message) is class_
        assert class_.struct.parse(class_.struct.build(message)) == message

    check()


@pytest.mark.parametrize("encoding", ["latin-1", "gbk", "shift_jis_2004", "euc-kr"])
def test_texts_are_in_the_encoding(encoding: str) -> None:
    @settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(testing.instances(v4, v4.Relation, encoding=encoding))
    def check(message: v4.Relation) -> None:
        assert v4.parse(message.build(encoding=encoding), encoding=encoding) == message

    check()


def test_parts_are_drawn_too() -> None:
    @settings(max_examples=20, derandomize=True)
    @given(
        testing.instances(v4, v4.TupleData), testing.instances(v4, v4.Text), testing.instances(v3_0, v3_0.ErrorField)
    )
    def check(row: v4.TupleData, text: v4.Text, field: v3_0.ErrorField) -> None:
        for part in (row, text, field):
            assert type(part).struct.parse(type(part).struct.build(part)) == part  # type: ignore[attr-defined]

    check()


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="is no version's module: expected one of"):
        testing.messages(sys)
    with pytest.raises(TypeError, match="has no argument 'two_phase'"):
        testing.messages(walsender, two_phase=True)
    with pytest.raises(TypeError, match=r"StreamStart is no message or part of logicalrep_protocol\.v1"):
        testing.instances(v1, v4.StreamStart)
    with pytest.raises(EncodingError):
        testing.messages(v4, encoding="none")


def test_without_hypothesis_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import logicalrep_protocol.testing"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "hypothesis is not installed: pip install 'logicalrep[testing]'" in result.stderr


def test_the_page_is_true() -> None:
    exec(example("docs/how-to/message-strategies.md", "testing.messages"), {})
