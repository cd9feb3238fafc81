"""Names, annotations and expressions of Python source, for the templates."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.emit.rendering import docstring, hexadecimal, joined
from codegen.emit.steps import Step, literal, steps
from codegen.lowering.operations import (
    Bytes,
    Choose,
    Conditional,
    Constant,
    Group,
    Integer,
    Measure,
    Operation,
    Operations,
    Repeat,
    Take,
    Text,
    attributes,
    flat,
    is_constant,
    measured,
    renamed,
)
from codegen.lowering.rows import enumeration_name, lower
from codegen.model import taken
from codegen.model.layouts import Alternative, Message, Part
from codegen.model.names import class_name, snake_case
from codegen.model.versions import View


@dataclass(frozen=True)
class Attribute:
    """An attribute of a generated class."""

    name: str
    annotation: str
    value: str
    """The expression of the attribute from a parser's local variable."""
    docstring: str
    may_be_absent: bool = False
    flags: tuple[tuple[int, str], ...] = ()

    @property
    def parameter(self) -> str:
        """The constructor's parameter, and parameters of its flags."""
        if not self.flags:
            return f"{self.name}: {self.annotation}{' = None' if self.may_be_absent else ''}"
        flags = "".join(f", {name}: bool | None = None" for _, name in self.flags)
        return f"{self.name}: int | None = None{flags}"

    @property
    def argument(self) -> str:
        """The expression of the attribute from the constructor's parameters."""
        if not self.flags:
            return self.name
        flags = ", ".join(f'"{name}": ({mask}, {name})' for mask, name in self.flags)
        flags_call = f'flags_of("{self.name}", {self.name}, {{{flags}}})'
        absent = " and ".join(f"{name} is None" for name in (self.name, *dict(self.flags).values()))
        return f"None if {absent} else {flags_call}" if self.may_be_absent else flags_call


@dataclass(frozen=True)
class Block:
    """The class of a message, part or alternative, with its Struct and its codecs."""

    layout: Message | Part | Alternative
    name: str
    docstring: str
    tag: str
    """Empty for a part."""
    operations: Operations
    attributes: tuple[Attribute, ...]
    enumerations: tuple[Take, ...]
    """The integers with named values that are new in this version."""
    steps: tuple[Step, ...]
    """The steps of parsing, after a message's tag."""
    build_steps: tuple[Step, ...]
    cells: Repeat | None
    """The repeated choice that the class stores as two columns."""
    alternatives: tuple[Block, ...]
    is_own: bool
    """True if this version changed the class, so that this module defines it."""

    @property
    def variable(self) -> str:
        """The class's name for use in variables."""
        return snake_case(self.name)

    @property
    def measure(self) -> Measure | None:
        """The measure of the whole message."""
        return next(
            (operation for operation in self.operations if isinstance(operation, Measure) and not operation.of), None
        )

    @property
    def is_message(self) -> bool:
        return isinstance(self.layout, Message)

    @property
    def rows(self) -> Operations:
        """The operations that are rows of the Struct."""
        return tuple(flat(self.operations))


class Source:
    """Python source for one version of a protocol."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.protocol = view.protocol

    def block(self, layout: Message | Part | Alternative) -> Block:
        """Return the class of a layout, including its alternatives' classes."""
        operations = lower(self.view, layout.fields)
        variables = renamed(operations, taken.local)
        text = docstring(layout.doc, layout.note)
        return Block(
            layout=layout,
            name=class_name(layout.name),
            docstring=text + self._origin(layout) if isinstance(layout, Message) else text,
            tag="" if isinstance(layout, Part) else layout.tag,
            operations=operations,
            attributes=self._attributes(operations, variables),
            enumerations=tuple(
                operation
                for operation in flat(operations)
                if isinstance(operation, Take) and operation.members and operation.since == self.view.version
            ),
            steps=steps(variables[isinstance(layout, Message) and layout.is_tagged :]),
            build_steps=steps(operations),
            cells=next(
                (
                    operation
                    for operation in operations
                    if isinstance(operation, Repeat) and isinstance(operation.body, Choose)
                ),
                None,
            ),
            alternatives=tuple(map(self.block, layout.alternatives)) if isinstance(layout, Part) else (),
            is_own=self.view.defined_in(layout) == self.view.version,
        )

    def _origin(self, message: Message) -> str:
        callbacks = f"\nSent by {', '.join(message.callbacks)}." if message.callbacks else ""
        release = "" if message.release is None else f"\nSince {self.protocol.software} {message.release}."
        origin = f"{self.protocol.official(message)}{release}{callbacks}".strip()
        return f"\n\n{origin}" if origin else ""

    def _attributes(self, operations: Operations, variables: Operations) -> tuple[Attribute, ...]:
        depending = {
            inner.name
            for operation in operations
            if isinstance(operation, Conditional)
            for inner in flat(operation.body)
        }
        collected: list[Attribute] = []
        for operation, variable in zip(attributes(operations), attributes(variables), strict=True):
            if isinstance(operation, Repeat) and isinstance(operation.body, Choose):
                collected += _columns(operation, operation.body)
                continue
            may_be_absent = operation.name in depending
            collected.append(
                Attribute(
                    name=operation.name,
                    annotation=annotation_of(operation) + (" | None" if may_be_absent else ""),
                    value=variable.name if may_be_absent else value_of(variable),
                    docstring=docstring(operation.doc, operation.remark),
                    may_be_absent=may_be_absent,
                    flags=tuple(operation.flags.items()) if isinstance(operation, Take) else (),
                )
            )
        return tuple(collected)

    def construct(self, operation: Operation, operations: Operations) -> str:
        """Return the Construct of a row."""
        expression = _construct(operation, operations)
        branch = next(
            (other for other in operations if isinstance(other, Conditional) and operation in other.body), None
        )
        if branch is not None and branch.fact:
            same = [other for other in operations if isinstance(other, Conditional) and other.fact == branch.fact]
            tells = (inner.name for other in same for inner in attributes(other.body))
            other = f", this.{next(tells)}" if is_constant(operation) else ""
            expression = f'IfSession("{branch.fact}", {expression}{other})'
        elif branch is not None and operation is branch.body[0]:
            assert isinstance(operation, Take)
            expression = f'OptionalChar("{operation.characters}")'
        elif branch is not None:
            expression = f"IfPresent(this.{branch.name}, {expression})"
        return f"{expression} * {operation.doc!r}" if operation.doc else expression


def _columns(repeat: Repeat, choose: Choose) -> list[Attribute]:
    """Return the two attributes of repeated alternatives: kinds and values."""
    legend = ", ".join(f"{other.tag} {other.name}" for other in choose.part.alternatives)
    bare = joined(choose.bare)
    return [
        Attribute("kinds", "bytes", "bytes(kinds)", docstring(f"One byte for each value: {legend}.")),
        Attribute(
            "values",
            "tuple[bytes | None, ...]",
            "tuple(values)",
            docstring(f"{repeat.doc} None for the kinds {bare}." if bare else repeat.doc),
        ),
    ]


def annotation_of(operation: Operation) -> str:
    """Return the type of an operation's attribute, without None."""
    match operation:
        case Repeat():
            return f"tuple[{annotation_of(operation.body)}, ...]"
        case Text():
            return "str"
        case Bytes():
            return "bytes | None" if operation.nullable else "bytes"
        case Group() | Choose():
            return operation.part.name
        case Take():
            return operation.python
        case _:
            return "int"


def value_of(operation: Operation) -> str:
    """Return the expression that converts an unpacked value to an attribute."""
    if isinstance(operation, Repeat) and isinstance(operation.body, Take):
        return f"tuple(map({operation.body.maker}, {operation.name}))" if operation.body.maker else operation.name
    if isinstance(operation, Repeat):
        return f"tuple({operation.name})"
    if not isinstance(operation, Take):
        return operation.name
    if operation.members and operation.allowed:
        return f"{operation.python}(chr({operation.name}))"
    if operation.is_character and operation.maker:
        return f"{operation.maker}({operation.name})"
    if operation.is_character:
        first, *other_characters = list(operation.characters)
        rest = "".join(
            f'"{other}" if {operation.name} == {hexadecimal(other)} else ' for other in other_characters[:-1]
        )
        return f'"{first}" if {operation.name} == {hexadecimal(first)} else {rest}"{other_characters[-1]}"'
    return f"{operation.maker}({operation.name})" if operation.maker else operation.name


def _construct(operation: Operation, operations: Operations) -> str:
    match operation:
        case Repeat():
            body = _construct(operation.body, operations)
            if operation.count:
                return f"Array(this.{operation.count}, {body})"
            return f"Until({operation.end!r}, {body})" if operation.end else f"UntilZero({body})"
        case Text():
            return "String"
        case Bytes():
            if operation.constant:
                return f"Const({operation.constant!r})"
            if operation.size:
                return f"FixedBytes({operation.size})"
            if operation.nullable:
                return f"NullableBytes(this.{operation.count})"
            return f"Bytes(this.{operation.count})" if operation.count else "GreedyBytes"
        case Choose():
            return f"_{snake_case(operation.part.name).upper()}"
        case Group():
            return f"{operation.part.name}.struct"
        case Measure():
            integer = operation.construct
            if not operation.of:
                return f"MessageLength({integer}, {operation.preceding})"
            length = f"length_or_null(this.{operation.of})" if operation.nullable else f"len_(this.{operation.of})"
            return f"Rebuild({integer}, {length})"
        case Constant():
            constant = (
                f'b"{chr(operation.code)}"' if operation.is_character else f"{operation.code}, {operation.construct}"
            )
            return f"Const({constant})"
        case Take():
            return _construct_take(operation)
    raise AssertionError(operation)


def _construct_take(operation: Take) -> str:
    integer = operation.construct
    if operation.members and operation.allowed:
        return f"Char({operation.python})"
    if operation.is_character:
        return f'Char("{operation.characters}")' if operation.allowed else "AnyChar"
    if operation.flags:
        return f"Flags({integer}, {', '.join(f'{name}={mask}' for mask, name in operation.flags.items())})"
    if operation.wrapper == "bool":
        return "Boolean"
    if operation.allowed:
        integer = f"OneOf({integer}, {operation.allowed})"
    if operation.refused:
        integer = f"NoneOf({integer}, {operation.refused})"
    return f"Typed({integer}, {operation.wrapper})" if operation.wrapper else integer


def packed(integer: Integer, operations: Operations) -> str:
    """Return the expression that packs an integer."""
    if isinstance(integer, Constant):
        return literal(integer, integer.code)
    if isinstance(integer, Measure):
        if not integer.of:
            return "0"
        other = measured(operations, integer)
        if integer.nullable:
            return f"-1 if self.{other.name} is None else len(self.{other.name})"
        is_choice = isinstance(other, Repeat) and isinstance(other.body, Choose)
        return "len(self.kinds)" if is_choice else f"len(self.{other.name})"
    return f"ord(self.{integer.name})" if integer.is_character else f"self.{integer.name}"


__all__ = ["Attribute", "Block", "Source", "annotation_of", "enumeration_name", "packed", "value_of"]
