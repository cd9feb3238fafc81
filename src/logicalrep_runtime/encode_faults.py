"""Finds the attribute that makes a message impossible to encode, by the message's layout."""

from __future__ import annotations

from logicalrep_runtime.errors import EncodeError, codec_name, shown
from logicalrep_runtime.layout import MessageLayout, ProtocolLayout
from logicalrep_runtime.layout_words import byte_text, bytes_of, choice_of, legal_of, of_version, tag_of
from logicalrep_runtime.operations import (
    Bytes,
    Choose,
    Conditional,
    Group,
    Measure,
    Operation,
    Operations,
    Repeat,
    Take,
    Text,
    flat,
)


def encode_error(
    protocol: ProtocolLayout,
    version: int,
    message: object,
    cause: Exception,
    *,
    encoding: str = "utf-8",
    sender: str = "server",
) -> EncodeError:
    """Return the error of a message or part that a generated encoder refused. `version` is the version of its class."""
    codec_name(encoding)
    tag = getattr(message, "tag", None)
    layout = _layout_of(protocol, message, tag, sender)
    name = layout.name if layout is not None else type(message).__name__
    operations = (layout if layout is not None else protocol.parts[type(message).__name__]).operations
    fault = _Faults(protocol, version, encoding).of_layout(operations, message, "")
    if fault is None:
        return EncodeError(name, "message", "attributes that fit their fields", f"{type(cause).__name__}: {cause}")
    return EncodeError(name, *fault)


def _layout_of(protocol: ProtocolLayout, message: object, tag: object, sender: str) -> MessageLayout | None:
    names = {name.replace(" ", "").lower(): layout for layout in protocol.messages for name in (layout.name,)}
    layout_of_class = names.get(type(message).__name__.lower())
    return protocol.message(ord(tag), sender) if layout_of_class is None and isinstance(tag, str) else layout_of_class


_Fault = tuple[str, str, str] | None


class _Faults:
    """Finds the first attribute that does not fit its field: its path, legal values, and actual value."""

    def __init__(self, protocol: ProtocolLayout, version: int, encoding: str) -> None:
        self.protocol = protocol
        self.version = version
        self.encoding = encoding

    def of_layout(self, operations: Operations, owner: object, prefix: str) -> _Fault:
        operations = of_version(operations, self.version)
        for operation in operations:
            branches = [
                other
                for other in operations
                if isinstance(operation, Conditional)
                and isinstance(other, Conditional)
                and (other is operation or (operation.fact and other.fact == operation.fact))
            ]
            companions = [inner for branch in branches for inner in self.attributes(branch.body)]
            for inner in self.attributes((operation,)):
                fault = self.of_attribute(operations, inner, companions, owner, prefix + inner.name)
                if fault is not None:
                    return fault
        return None

    def attributes(self, operations: Operations) -> list[Operation]:
        return [operation for operation in of_version(tuple(flat(operations)), self.version) if operation.is_attribute]

    def of_attribute(
        self, operations: Operations, operation: Operation, companions: list[Operation], owner: object, path: str
    ) -> _Fault:
        """Find the fault of one attribute. `companions` are attributes that are None if and only if this one is."""
        if isinstance(operation, Repeat) and isinstance(operation.body, Choose):
            return self.of_cells(operations, operation, operation.body, owner, path)
        value = getattr(owner, operation.name)
        for other in companions:
            if (getattr(owner, other.name) is None) != (value is None):
                return path, f"a value if and only if {other.name} has one", shown(value)
        if companions and value is None:
            return None
        if not isinstance(operation, Repeat):
            return self.of_value(operations, operation, value, path)
        if not isinstance(value, tuple | list):
            return path, "a tuple", shown(value)
        if operation.count and len(value) >= _limit(operations, operation.count):
            return path, f"fewer than {_limit(operations, operation.count)} items", str(len(value))
        faults = (
            self.of_value(operations, operation.body, item, f"{path}[{index}]") for index, item in enumerate(value)
        )
        return next((fault for fault in faults if fault is not None), None)

    def of_value(self, operations: Operations, operation: Operation, value: object, path: str) -> _Fault:
        match operation:
            case Group():
                if type(value).__name__ != operation.part:
                    return path, operation.part, shown(value)
                return self.of_layout(self.protocol.parts[operation.part].operations, value, f"{path}.")
            case Text():
                return self.of_text(value, path)
            case Bytes():
                return _bytes_fault(operations, operation, value, path, "bytes")
            case Take(is_character=True):
                legal = operation.allowed or range(1, 256)
                if isinstance(value, str) and len(value) == 1 and ord(value) in legal:
                    return None
                return (
                    path,
                    legal_of(operation) if operation.allowed else "a character that is no zero byte",
                    shown(value),
                )
            case Take():
                low, high = _bounds(operation)
                if not isinstance(value, int) or not low <= value <= high or value in operation.refused:
                    first = next((number for number in range(low, high + 1) if number not in operation.refused), low)
                    return path, f"a whole number from {first} to {high}", shown(value)
        return None

    def of_text(self, value: object, path: str) -> _Fault:
        if not isinstance(value, str):
            return path, "a str", shown(value)
        if "\0" in value:
            return path, "a text without a zero byte", shown(value)
        try:
            value.encode(self.encoding)
        except UnicodeEncodeError:
            return path, f"a text that {self.encoding} can write", shown(value)
        return None

    def of_cells(self, operations: Operations, operation: Repeat, choose: Choose, owner: object, path: str) -> _Fault:
        kinds, values = getattr(owner, "kinds", None), getattr(owner, "values", None)
        if not isinstance(kinds, bytes) or not isinstance(values, tuple | list) or len(kinds) != len(values):
            return path, "kinds as bytes and as many values in a tuple", f"{shown(kinds)} and {shown(values)}"
        if len(kinds) >= _limit(operations, operation.count):
            return path, f"fewer than {_limit(operations, operation.count)} items", str(len(kinds))
        alternatives = of_version(self.protocol.parts[choose.part].alternatives, self.version)
        rows = {
            tag_of(alternative).code: of_version(alternative.operations, self.version)[1:]
            for alternative in alternatives
        }
        value_name = next(
            (operations_of_kind[-1].name for operations_of_kind in rows.values() if operations_of_kind), "value"
        )
        for index, (kind, value) in enumerate(zip(kinds, values, strict=True)):
            value_path = f"{path}[{index}].{value_name}"
            if kind not in rows:
                return f"{path}[{index}].{tag_of(alternatives[0]).name}", choice_of(tuple(rows)), byte_text(kind)
            last = rows[kind][-1] if rows[kind] else None
            expected = f"bytes for the kind {byte_text(kind)}"
            if isinstance(last, Bytes) and (fault := _bytes_fault(rows[kind], last, value, value_path, expected)):
                return fault
            if last is None and value is not None:
                return value_path, f"None for the kind {byte_text(kind)}", shown(value)
        return None


def _bytes_fault(operations: Operations, operation: Bytes, value: object, path: str, expected: str) -> _Fault:
    if value is None and operation.nullable:
        return None
    if not isinstance(value, bytes):
        return path, expected, shown(value)
    if operation.size:
        return None if len(value) == operation.size else (path, bytes_of(operation.size), bytes_of(len(value)))
    limit = _limit(operations, operation.count) if operation.count else len(value) + 1
    return None if len(value) < limit else (path, f"fewer than {limit} bytes", str(len(value)))


def _limit(operations: Operations, name: str) -> int:
    """Return the smallest number that does not fit the measure."""
    measure = next(operation for operation in operations if isinstance(operation, Measure) and operation.name == name)
    return 1 << (8 * measure.width - measure.signed)


def _bounds(integer: Take) -> tuple[int, int]:
    if integer.allowed:
        return min(integer.allowed), max(integer.allowed)
    return -(1 << (8 * integer.width - 1)) if integer.signed else 0, (1 << (8 * integer.width - integer.signed)) - 1
