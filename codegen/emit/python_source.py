"""The model in Python: the names, annotations and expressions that the templates put together."""

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
    measured,
    renamed,
)
from codegen.lowering.rows import enumeration_name, lower
from codegen.spec import taken
from codegen.spec.layouts import Alternative, Message, Part
from codegen.spec.names import class_name, snake_case
from codegen.spec.versions import View


@dataclass(frozen=True)
class Attribute:
    """An attribute of a generated class."""

    name: str
    annotation: str
    value: str
    """The expression that makes it from the local variable of a parser."""
    docstring: str
    may_be_absent: bool = False
    flags: tuple[tuple[int, str], ...] = ()

    @property
    def parameter(self) -> str:
        """The constructor's parameter, and those of its flags."""
        if not self.flags:
            return f"{self.name}: {self.annotation}{' = None' if self.may_be_absent else ''}"
        flags = "".join(f", {name}: bool | None = None" for _, name in self.flags)
        return f"{self.name}: int | None = None{flags}"

    @property
    def given(self) -> str:
        """The expression that makes it from the constructor's parameters."""
        if not self.flags:
            return self.name
        flags = ", ".join(f'"{name}": ({mask}, {name})' for mask, name in self.flags)
        made = f'flags_of("{self.name}", {self.name}, {{{flags}}})'
        absent = " and ".join(f"{name} is None" for name in (self.name, *dict(self.flags).values()))
        return f"None if {absent} else {made}" if self.may_be_absent else made


@dataclass(frozen=True)
class Block:
    """The class of a message, part or alternative, with its Struct and its straight-line codecs."""

    layout: Message | Part | Alternative
    name: str
    docstring: str
    tag: str
    """Empty for a part."""
    operations: Operations
    attributes: tuple[Attribute, ...]
    enumerations: tuple[Take, ...]
    """The integers whose values have names, since this version."""
    steps: tuple[Step, ...]
    """The steps of parsing, without a message's tag, which is known then."""
    build_steps: tuple[Step, ...]
    cells: Repeat | None
    """The repeated choice that the class holds as two columns."""
    alternatives: tuple[Block, ...]
    is_own: bool
    """True if this version was the last to change it, so that its class stands here."""

    @property
    def variable(self) -> str:
        """The class's name as part of a variable's."""
        return snake_case(self.name)

    @property
    def measure(self) -> Measure | None:
        """The measure of the whole message."""
        return next((one for one in self.operations if isinstance(one, Measure) and not one.of), None)

    @property
    def is_message(self) -> bool:
        """True if it is a message's class."""
        return isinstance(self.layout, Message)

    @property
    def rows(self) -> Operations:
        """The operations that are rows of the Struct."""
        return tuple(flat(self.operations))


class Source:
    """The Python of one version of a protocol."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.protocol = view.protocol

    def block(self, layout: Message | Part | Alternative) -> Block:
        """The class of a layout, and those of its alternatives."""
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
                one
                for one in flat(operations)
                if isinstance(one, Take) and one.members and one.since == self.view.version
            ),
            steps=steps(variables[isinstance(layout, Message) and layout.is_tagged :]),
            build_steps=steps(operations),
            cells=next((one for one in operations if isinstance(one, Repeat) and isinstance(one.body, Choose)), None),
            alternatives=tuple(map(self.block, layout.alternatives)) if isinstance(layout, Part) else (),
            is_own=self.view.defined_in(layout) == self.view.version,
        )

    def _origin(self, message: Message) -> str:
        """Return the address in the documentation, and the sender."""
        callbacks = f"\nSent by {', '.join(message.callbacks)}." if message.callbacks else ""
        release = "" if message.release is None else f"\nSince {self.protocol.software} {message.release}."
        told = f"{self.protocol.official(message)}{release}{callbacks}".strip()
        return f"\n\n{told}" if told else ""

    def _attributes(self, operations: Operations, variables: Operations) -> tuple[Attribute, ...]:
        depending = {inner.name for one in operations if isinstance(one, Conditional) for inner in flat(one.body)}
        found: list[Attribute] = []
        for one, variable in zip(attributes(operations), attributes(variables), strict=True):
            if isinstance(one, Repeat) and isinstance(one.body, Choose):
                found += _columns(one, one.body)
                continue
            may_be_absent = one.name in depending
            found.append(
                Attribute(
                    name=one.name,
                    annotation=annotation_of(one) + (" | None" if may_be_absent else ""),
                    value=variable.name if may_be_absent else value_of(variable),
                    docstring=docstring(one.doc, one.remark),
                    may_be_absent=may_be_absent,
                    flags=tuple(one.flags.items()) if isinstance(one, Take) else (),
                )
            )
        return tuple(found)

    def construct(self, one: Operation, operations: Operations) -> str:
        """The construct of one row of a layout."""
        expression = _construct(one, operations)
        branch = next((other for other in operations if isinstance(other, Conditional) and one in other.body), None)
        if branch is not None and branch.fact:
            same = [other for other in operations if isinstance(other, Conditional) and other.fact == branch.fact]
            tells = (inner.name for other in same for inner in attributes(other.body))
            other = f", this.{next(tells)}" if isinstance(one, Constant) else ""
            expression = f'IfSession("{branch.fact}", {expression}{other})'
        elif branch is not None and one is branch.body[0]:
            assert isinstance(one, Take)
            expression = f'OptionalChar("{one.characters}")'
        elif branch is not None:
            expression = f"IfPresent(this.{branch.name}, {expression})"
        return f"{expression} * {one.doc!r}" if one.doc else expression


def _columns(repeat: Repeat, choose: Choose) -> list[Attribute]:
    """The two attributes that hold repeated alternatives: their tags, and the values of those that have one."""
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


def annotation_of(one: Operation) -> str:
    """The type of an operation's attribute, without None."""
    match one:
        case Repeat():
            return f"tuple[{annotation_of(one.body)}, ...]"
        case Text():
            return "str"
        case Bytes():
            return "bytes | None" if one.nullable else "bytes"
        case Group() | Choose():
            return one.part.name
        case Take():
            return one.python
        case _:
            return "int"


def value_of(one: Operation) -> str:
    """The expression that makes an attribute from what was unpacked."""
    if isinstance(one, Repeat) and isinstance(one.body, Take):
        return f"tuple(map({one.body.maker}, {one.name}))" if one.body.maker else one.name
    if isinstance(one, Repeat):
        return f"tuple({one.name})"
    if not isinstance(one, Take):
        return one.name
    if one.members and one.allowed:
        return f"{one.python}(chr({one.name}))"
    if one.is_character and one.maker:
        return f"{one.maker}({one.name})"
    if one.is_character:
        first, *others = list(one.characters)
        rest = "".join(f'"{other}" if {one.name} == {hexadecimal(other)} else ' for other in others[:-1])
        return f'"{first}" if {one.name} == {hexadecimal(first)} else {rest}"{others[-1]}"'
    return f"{one.maker}({one.name})" if one.maker else one.name


def _construct(one: Operation, operations: Operations) -> str:
    match one:
        case Repeat():
            body = _construct(one.body, operations)
            return f"Array(this.{one.count}, {body})" if one.count else f"UntilZero({body})"
        case Text():
            return "String"
        case Bytes():
            if one.size:
                return f"Bytes({one.size})"
            if one.nullable:
                return f"NullableBytes(this.{one.count})"
            return f"Bytes(this.{one.count})" if one.count else "GreedyBytes"
        case Choose():
            return f"_{snake_case(one.part.name).upper()}"
        case Group():
            return f"{one.part.name}.struct"
        case Measure():
            integer = one.construct
            if not one.of:
                return f"MessageLength({integer}, {one.preceding})"
            length = f"length_or_null(this.{one.of})" if one.nullable else f"len_(this.{one.of})"
            return f"Rebuild({integer}, {length})"
        case Constant():
            constant = f'b"{chr(one.code)}"' if one.is_character else f"{one.code}, {one.construct}"
            return f"Const({constant})"
        case Take():
            return _construct_take(one)
    raise AssertionError(one)


def _construct_take(one: Take) -> str:
    integer = one.construct
    if one.members and one.allowed:
        return f"Char({one.python})"
    if one.is_character:
        return f'Char("{one.characters}")' if one.allowed else "AnyChar"
    if one.flags:
        return f"Flags({integer}, {', '.join(f'{name}={mask}' for mask, name in one.flags.items())})"
    if one.wrapper == "bool":
        return "Boolean"
    if one.allowed:
        integer = f"OneOf({integer}, {one.allowed})"
    if one.refused:
        integer = f"NoneOf({integer}, {one.refused})"
    return f"Typed({integer}, {one.wrapper})" if one.wrapper else integer


def packed(one: Integer, operations: Operations) -> str:
    """The expression to pack one integer of a layout."""
    if isinstance(one, Constant):
        return literal(one, one.code)
    if isinstance(one, Measure):
        if not one.of:
            return "0"
        other = measured(operations, one)
        if one.nullable:
            return f"-1 if self.{other.name} is None else len(self.{other.name})"
        is_choice = isinstance(other, Repeat) and isinstance(other.body, Choose)
        return "len(self.kinds)" if is_choice else f"len(self.{other.name})"
    return f"ord(self.{one.name})" if one.is_character else f"self.{one.name}"


__all__ = ["Attribute", "Block", "Source", "annotation_of", "enumeration_name", "packed", "value_of"]
