"""Hypothesis strategies of messages and parts, by their layouts."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from enum import EnumMeta
from types import ModuleType
from typing import Any

from logicalrep_runtime.errors import codec_name, unknown_argument
from logicalrep_runtime.layout import MessageLayout, PartLayout, ProtocolLayout
from logicalrep_runtime.layout_words import of_version
from logicalrep_runtime.operations import Bytes, Choose, Conditional, Group, Operation, Operations, Repeat, Take, Text

try:
    from hypothesis import strategies as st
except ModuleNotFoundError as error:
    text = f"{error.name} is not installed: pip install 'logicalrep[testing]'"
    raise ModuleNotFoundError(text, name=error.name) from None

_MOST_ITEMS = 4
_MOST_BYTES = 20


def messages(
    protocol: ProtocolLayout, version: int, module: ModuleType, sender: str, encoding: str, facts: Mapping[str, Any]
) -> st.SearchStrategy[Any]:
    """Return a strategy of the messages that `parse` accepts with these arguments. Raises the errors of `instances`.

    Raises ValueError if `parse` accepts no message with these arguments.
    """
    source = _StrategySource(protocol, version, module, encoding, facts)
    strategies = [
        source.message(layout, sender)
        for layout in protocol.messages
        if layout.sender in (sender, "both") and layout.since <= version and source.is_due(layout)
    ]
    if not strategies:
        raise ValueError(f"the {sender} sends no message of {module.__name__} with {dict(facts)}")
    return st.one_of(strategies)


def instances(
    protocol: ProtocolLayout,
    version: int,
    module: ModuleType,
    class_: type[Any],
    encoding: str,
    facts: Mapping[str, Any],
) -> st.SearchStrategy[Any]:
    """Return a strategy of the instances of a class.

    Raises TypeError for a class that is no message or part, and for an unknown fact; EncodingError for an unknown
    encoding.
    """
    source = _StrategySource(protocol, version, module, encoding, facts)
    layouts = {layout.class_name: layout.operations for layout in protocol.messages if layout.since <= version}
    for name, part in protocol.parts.items():
        layouts[name] = part.operations
        layouts |= {alternative.name: alternative.operations for alternative in part.alternatives}
    operations = layouts.get(class_.__name__)
    if operations is None or getattr(module, class_.__name__, None) is not class_:
        raise TypeError(f"{class_.__name__} is no message or part of {module.__name__}")
    return source.instance(class_, operations)


class _StrategySource:
    def __init__(
        self, protocol: ProtocolLayout, version: int, module: ModuleType, encoding: str, facts: Mapping[str, Any]
    ) -> None:
        for name in facts.keys() - protocol.session.keys():
            raise unknown_argument(messages, name, ["sender", "encoding", *protocol.session])  # type: ignore[arg-type]
        self.protocol = protocol
        self.version = version
        self.module = module
        self.encoding = codec_name(encoding)
        self.facts = facts

    def is_due(self, layout: MessageLayout) -> bool:
        initial_values = {name: values[0] for name, values in self.protocol.values.items()}
        name, value = layout.when or ("", "")
        return not name or {**initial_values, **self.facts}[name] == value

    def message(self, layout: MessageLayout, sender: str) -> st.SearchStrategy[Any]:
        strategy = self.instance(getattr(self.module, layout.class_name), layout.operations)
        rivals = self.protocol.candidates(layout.tag.encode("latin-1"), self.version, sender, self.facts)
        if rivals == (layout,):
            return strategy
        return strategy.filter(lambda message: self._find(message, sender) is layout)

    def _find(self, message: Any, sender: str) -> MessageLayout | None:
        return self.protocol.find(self._bytes(message), self.version, sender, self.facts)

    def instance(self, class_: type[Any], operations: Operations) -> st.SearchStrategy[Any]:
        attributes = dict(self._attributes(class_, operations))
        for operation in of_version(operations, self.version):
            if isinstance(operation, Repeat) and isinstance(operation.body, Choose):
                cells = st.lists(self._choice(self.protocol.parts[operation.body.part]), max_size=_MOST_ITEMS)
                own_values = st.fixed_dictionaries(attributes)
                return st.builds(lambda cells, own_values: class_.of(*cells, **own_values), cells, own_values)
        groups = self._optional(class_, operations)
        return st.builds(
            lambda own, *groups: class_(**_joined(own, groups)), st.fixed_dictionaries(attributes), *groups
        )

    def _attributes(self, class_: type[Any], operations: Operations) -> Iterator[tuple[str, st.SearchStrategy[Any]]]:
        """Yield the attributes of rows without a condition."""
        for operation in of_version(operations, self.version):
            if isinstance(operation, Repeat) and isinstance(operation.body, Choose):
                continue
            if operation.is_attribute and not isinstance(operation, Conditional):
                yield operation.name, self._value(class_, operation)

    def _optional(self, class_: type[Any], operations: Operations) -> list[st.SearchStrategy[dict[str, Any]]]:
        """Return the attributes of each condition: all have values, or all are None."""
        strategies = []
        for condition in of_version(operations, self.version):
            if isinstance(condition, Conditional) and (body := of_version(condition.body, self.version)):
                present = st.fixed_dictionaries(dict(self._attributes(class_, body)))
                absent = st.just({row.name: None for row in body if row.is_attribute})
                is_present = self.facts.get(condition.fact, False)
                strategies.append(present | absent if condition.ahead else present if is_present else absent)
        return strategies

    def _value(self, class_: type[Any], operation: Operation) -> st.SearchStrategy[Any]:
        match operation:
            case Repeat():
                return self._items(class_, operation)
            case Group():
                return self._part(operation.part)
            case Choose():
                return self._choice(self.protocol.parts[operation.part])
            case Text():
                return self._text()
            case Bytes(size=size) if size:
                return st.binary(min_size=size, max_size=size)
            case Bytes():
                values = st.binary(max_size=_MOST_BYTES)
                return st.none() | values if operation.nullable else values
            case Take():
                return self._integer(class_, operation)
        raise AssertionError(f"a row without a strategy: {operation}")

    def _part(self, name: str) -> st.SearchStrategy[Any]:
        return self.instance(getattr(self.module, name), self.protocol.parts[name].operations)

    def _choice(self, part: PartLayout) -> st.SearchStrategy[Any]:
        return st.one_of(
            [
                self.instance(getattr(self.module, alternative.name), alternative.operations)
                for alternative in of_version(part.alternatives, self.version)
            ]
        )

    def _items(self, class_: type[Any], repeat: Repeat) -> st.SearchStrategy[Any]:
        items = self._value(class_, repeat.body)
        if not repeat.count:
            end = repeat.end or b"\0"
            items = items.filter(lambda item: not self._bytes(item).startswith(end))
        return st.lists(items, max_size=_MOST_ITEMS).map(tuple)

    def _bytes(self, item: Any) -> bytes:
        if isinstance(item, str):
            return item.encode(self.encoding) + b"\0"
        data: bytes = item.struct.build(item, encoding=self.encoding)
        return data

    def _text(self) -> st.SearchStrategy[str]:
        texts = st.text(_alphabet(self.encoding), max_size=_MOST_BYTES)
        return texts.filter(lambda text: _comes_back(text, self.encoding))

    def _integer(self, class_: type[Any], take: Take) -> st.SearchStrategy[Any]:
        if take.is_character:
            codes = st.sampled_from(take.allowed) if take.allowed else st.integers(1, 255)
            annotation = str(class_.__annotations__[take.name]).removesuffix(" | None")
            members = getattr(self.module, annotation, None)
            return codes.map(chr).map(members if isinstance(members, EnumMeta) and take.allowed else str)
        if take.allowed:
            numbers = st.sampled_from(take.allowed)
        else:
            low = -(1 << (8 * take.width - 1)) if take.signed else 0
            high = (1 << (8 * take.width - take.signed)) - 1
            numbers = st.integers(low, high) | st.sampled_from([low, high])
            numbers = numbers.filter(lambda number: number not in take.refused)
        return numbers if take.wrapper is None else numbers.map(take.wrapper)


@functools.cache
def _alphabet(encoding: str) -> st.SearchStrategy[str]:
    if encoding == "utf-8":
        return st.characters(codec=encoding, exclude_characters="\0")
    characters = [chr(code) for code in range(1, 1 << 16) if not 0xD800 <= code < 0xE000]
    return st.sampled_from([character for character in characters if _comes_back(character, encoding)])


def _comes_back(text: str, encoding: str) -> bool:
    """Return whether a text is the same after its encoding: some characters, or sequences of them, share bytes."""
    try:
        data = text.encode(encoding)
        return 0 not in data and data.decode(encoding) == text
    except UnicodeError:
        return False


def _joined(own: dict[str, Any], groups: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    return {name: value for group in (own, *groups) for name, value in group.items()}
