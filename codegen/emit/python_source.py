"""How the model reads in Python: the names, annotations and expressions that the templates put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codegen.emit.rendering import docstring, hexadecimal, joined, literals, whether
from codegen.emit.steps import Cells, Run, Step, letter, renamed, steps
from codegen.spec import taken
from codegen.spec.model import REST, Alternative, Field, Message, NamedType, Part, attributes, counted
from codegen.spec.names import class_name, snake_case
from codegen.spec.notation import Byte1, Byten, Int, PartName, String
from codegen.spec.versions import View

_CONSTRUCT_INTS = {
    letter: f"Int{8 * width}{sign}b"
    for sign, letters in (("s", "bhiq"), ("u", "BHIQ"))
    for letter, width in zip(letters, (1, 2, 4, 8), strict=True)
}


@dataclass(frozen=True)
class Attribute:
    """An attribute of a generated class."""

    name: str
    annotation: str
    value: str
    """The expression that makes it from the local variable of a parser."""
    docstring: str
    optional: bool = False
    bits: tuple[tuple[int, str], ...] = ()

    @property
    def parameter(self) -> str:
        """The constructor's parameter, and those of its bits."""
        if not self.bits:
            return f"{self.name}: {self.annotation}{' = None' if self.optional else ''}"
        bits = "".join(f", {name}: bool | None = None" for _, name in self.bits)
        return f"{self.name}: int | None = None{bits}"

    @property
    def given(self) -> str:
        """The expression that makes it from the constructor's parameters."""
        if not self.bits:
            return self.name
        bits = ", ".join(f'"{name}": ({bit}, {name})' for bit, name in self.bits)
        made = f'flags_of("{self.name}", {self.name}, {{{bits}}})'
        absent = " and ".join(f"{name} is None" for name in (self.name, *dict(self.bits).values()))
        return f"None if {absent} else {made}" if self.optional else made


@dataclass(frozen=True)
class Block:
    """The class of a message, part or alternative, with its Struct and its straight-line codecs."""

    layout: Message | Part | Alternative
    name: str
    docstring: str
    tag: str
    """Empty for a part."""
    attributes: tuple[Attribute, ...]
    enumerations: tuple[Field, ...]
    """The fields whose characters have names, since this version."""
    steps: tuple[Step, ...]
    """The steps of parsing, without a message's tag, which is known then."""
    build_steps: tuple[Step, ...]
    cells: Cells | None
    alternatives: tuple[Block, ...]
    is_own: bool
    """Whether it is as it is since this version, so that its class stands here."""

    @property
    def variable(self) -> str:
        """The class's name as part of a variable's."""
        return snake_case(self.name)


class Source:
    """The Python of one version of a protocol."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.protocol = view.protocol
        self.facts = {fact.name for fact in view.protocol.session}

    def block(self, layout: Message | Part | Alternative) -> Block:
        """The class of a layout, and those of its alternatives."""
        fields = layout.fields
        build_steps = steps(self.view, fields)
        text = docstring(layout.doc, layout.note)
        return Block(
            layout=layout,
            name=class_name(layout.name),
            docstring=text + self._origin(layout) if isinstance(layout, Message) else text,
            tag="" if isinstance(layout, Part) else layout.tag,
            attributes=self._attributes(fields),
            enumerations=tuple(row for row in fields if row.values and row.since == self.view.version),
            steps=steps(self.view, renamed(fields[isinstance(layout, Message) :], taken.local)),
            build_steps=build_steps,
            cells=next((step for step in build_steps if isinstance(step, Cells)), None),
            alternatives=tuple(map(self.block, layout.alternatives)) if isinstance(layout, Part) else (),
            is_own=self.view.defined_in(layout) == self.view.version,
        )

    def _origin(self, message: Message) -> str:
        """Return the address in the documentation, and the sender."""
        callbacks = f"\nSent by {', '.join(message.callbacks)}." if message.callbacks else ""
        release = "" if message.release is None else f"\nSince PostgreSQL {message.release}."
        return f"\n\n{self.protocol.official(message)}{release}{callbacks}"

    def _attributes(self, fields: tuple[Field, ...]) -> tuple[Attribute, ...]:
        variables = dict(zip((row.name for row in fields), renamed(fields, taken.local), strict=True))
        found: list[Attribute] = []
        for row in attributes(fields):
            variable = variables[row.name]
            part = self.view.part_of(row)
            if part is not None and part.alternatives:
                found += self._columns(row, part)
                continue
            optional = row.when is not None or row.optional
            found.append(
                Attribute(
                    name=row.name,
                    annotation=self.annotation_of(row) + (" | None" if optional else ""),
                    value=variable.name if optional else self.value_of(variable),
                    docstring=docstring(row.doc, self._notation(row) + row.note),
                    optional=optional,
                    bits=tuple(row.bits.items()),
                )
            )
        return tuple(found)

    def _notation(self, row: Field) -> str:
        """Return what the modifiers of a field mean for its attribute."""
        text = "Never zero. " if row.nonzero else ""
        if row.when in self.facts:
            fact = next(fact for fact in self.protocol.session if fact.name == row.when)
            return f"{text}There {whether(fact).replace('whether', 'when', 1)}. "
        return text if row.when is None else f"{text}There when `{row.when}` is. "

    def _columns(self, row: Field, part: Part) -> list[Attribute]:
        """The two attributes that hold repeated alternatives: their tags, and the values of those that have one."""
        legend = ", ".join(f"{other.tag} {other.name}" for other in part.alternatives)
        bare = joined(other.tag for other in part.alternatives if len(other.fields) == 1)
        return [
            Attribute("kinds", "bytes", "bytes(kinds)", docstring(f"One byte for each value: {legend}.")),
            Attribute(
                "values",
                "tuple[bytes | None, ...]",
                "tuple(values)",
                docstring(f"{row.doc} None for the kinds {bare}." if bare else row.doc),
            ),
        ]

    def annotation_of(self, row: Field) -> str:
        """The type of a field's attribute, without None."""
        return annotation_of(self.protocol.types, row)

    def value_of(self, row: Field) -> str:
        """The expression that makes an attribute from what was unpacked."""
        wrapper = self._class_of(row).replace("Lsn", "lsn_of")
        if row.repeat is not None and isinstance(row.type, Int):
            return f"tuple(map({wrapper}, {row.name}))" if wrapper else row.name
        if row.repeat is not None:
            return f"tuple({row.name})"
        if row.values:
            return f"{self.annotation_of(row)}(chr({row.name}))"
        if row.boolean:
            return f"bool({row.name})"
        if isinstance(row.type, Byte1) and len(row.type.constants) > 1:
            first, *others = row.type.constants
            rest = "".join(f'"{other}" if {row.name} == {hexadecimal(other)} else ' for other in others[:-1])
            return f'"{first}" if {row.name} == {hexadecimal(first)} else {rest}"{others[-1]}"'
        return f"{wrapper}({row.name})" if wrapper else row.name

    def construct(self, row: Field, fields: tuple[Field, ...]) -> str:
        """The construct of one row of a layout."""
        expression = self._construct_once(row, fields)
        if row.repeat is not None:
            expression = f"Array(this.{row.repeat}, {expression})"
        if row.when in self.facts:
            tells = (other.name for other in attributes(fields) if other.when == row.when)
            other = f", this.{next(tells)}" if row.is_constant else ""
            expression = f'IfSession("{row.when}", {expression}{other})'
        elif row.when is not None:
            expression = f"IfPresent(this.{row.when}, {expression})"
        return f"{expression} * {row.doc!r}" if row.doc else expression

    def _construct_once(self, row: Field, fields: tuple[Field, ...]) -> str:
        if isinstance(row.type, String):
            return "String"
        if isinstance(row.type, Byten):
            return "GreedyBytes" if row.size == REST else f"Bytes(this.{row.size})"
        if (part := self.view.part_of(row)) is not None:
            return f"_{snake_case(part.name).upper()}" if part.alternatives else f"{part.name}.struct"
        if row.values:
            return f"Char({self.annotation_of(row)})"
        integer = _CONSTRUCT_INTS[letter(self.view, row)]
        if isinstance(row.type, Byte1) and row.type.constants:
            constants = "".join(row.type.constants)
            if row.optional:
                return f'OptionalChar("{constants}")'
            return f'Const(b"{constants}")' if len(constants) == 1 else f'Char("{constants}")'
        if row.constants:
            return f"Const({row.constants[0]}, {integer})"
        if (other := counted(fields, row)) is not None:
            return f"Rebuild({integer}, len_(this.{other.name}))"
        if row.boolean:
            return "Boolean"
        if row.bits:
            return f"Flags({integer}, {', '.join(f'{name}={bit}' for bit, name in row.bits.items())})"
        if row.nonzero:
            integer = f"NoneOf({integer}, (0,))"
        wrapper = self._class_of(row)
        return f"Typed({integer}, {wrapper})" if wrapper else integer

    def _class_of(self, row: Field) -> str:
        """The class of an integer's value where that is not int."""
        python = self.protocol.types[row.named_type].python if row.named_type is not None else ""
        return python if python in ("Lsn", "TimestampTz") else ""

    def packed(self, row: Field, fields: tuple[Field, ...]) -> str:
        """The expression to pack one integer of a layout."""
        if row.is_constant:
            return literals(row)[0]
        if row.is_character:
            return f"ord(self.{row.name})"
        other = counted(fields, row)
        if other is None:
            return f"self.{row.name}"
        part = self.view.part_of(other)
        return "len(self.kinds)" if part is not None and part.alternatives else f"len(self.{other.name})"


def checks_of(run: Run, *, named: bool = False) -> list[str]:
    """The conditions under which integers that were read are refused; those with names only where no class does it."""
    checks = []
    for row in run.rows:
        if row.legal and (named or not row.values):
            checks.append(" and ".join(f"{row.name} != {code}" for code in literals(row)))
        elif row.boolean:
            checks.append(f"{row.name} > 1")
        elif row.nonzero:
            checks.append(f"not {row.name}")
    return checks


def guards_of(run: Run) -> list[str]:
    """The conditions under which attributes are refused though they fit their width."""
    guards = []
    for row in run.rows:
        if row.legal and not row.is_constant:
            guards.append(f"self.{row.name} not in {row.legal}")
        elif row.boolean:
            guards.append(f"self.{row.name} not in (0, 1)")
        elif row.nonzero:
            guards.append(f"not self.{row.name}")
    return guards


def annotation_of(types: Mapping[str, NamedType], row: Field) -> str:
    """The type of a field's attribute, without None."""
    if row.values:
        return enumeration_name(row)
    if row.boolean:
        return "bool"
    if isinstance(row.type, String):
        return "str"
    if isinstance(row.type, Byten):
        return "bytes"
    if isinstance(row.type, Byte1) and row.type.constants:
        return f"Literal[{', '.join(repr(character) for character in row.type.constants)}]"
    name = row.type.name if isinstance(row.type, PartName) else "int"
    if row.named_type is not None:
        name = types[row.named_type].python
    return name if row.repeat is None else f"tuple[{name}, ...]"


def enumeration_name(row: Field) -> str:
    """The class of a field whose characters have names."""
    return class_name(row.name.replace("_", " "))
