"""How the model reads in Python: the names, annotations and expressions that the templates put together."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from struct import calcsize

from codegen.emit.blocks import AlternativeBlock, Attribute, Block, Cells, Enumeration
from codegen.emit.steps import Fixed, Run, Single, fixed, renamed, steps
from codegen.shared import lowered
from codegen.spec import taken
from codegen.spec.model import REST, Alternative, Field, Message, NamedType, Part, Protocol, SessionFact
from codegen.spec.names import class_name, snake_case
from codegen.spec.notation import Byte1, Byten, Int, PartName, String
from codegen.spec.versions import View

MARK = "by `python -m codegen regen`; do not edit."
"""Every file of the generator has it, but for those without any text; it removes no others."""
NOTICE = f"Generated from spec/ {MARK}"

_CONSTRUCT_INTS = {
    letter: f"Int{8 * width}{sign}b"
    for sign, letters in (("s", "bhiq"), ("u", "BHIQ"))
    for letter, width in zip(letters, (1, 2, 4, 8), strict=True)
}


class Source:
    """The Python of one version of a protocol."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.protocol = view.protocol
        self.facts = {fact.name for fact in view.protocol.session}

    def message_block(self, message: Message) -> Block:
        """The class of a message."""
        return self._block(
            class_name(message.name),
            self._message_docstring(message),
            message.fields,
            tag=message.tag,
            sender=message.sender,
        )

    def part_block(self, part: Part) -> Block:
        """The class of a part, or the classes of its alternatives."""
        return self._block(part.name, docstring(part.doc, part.note), part.fields, alternatives=part.alternatives)

    def _block(
        self,
        name: str,
        text: str,
        fields: tuple[Field, ...],
        *,
        tag: str = "",
        sender: str = "server",
        alternatives: tuple[Alternative, ...] = (),
    ) -> Block:
        build_steps = steps(self.view, fields)
        step = next((step for step in build_steps if isinstance(step, Single) and step.kind == "cells"), None)
        cells = None if step is None else self.cells_of(step)
        return Block(
            name=name,
            docstring=text,
            tag=tag,
            sender=sender,
            attributes=self._attributes(fields),
            enumerations=tuple(self._enumeration(row) for row in fields if row.values),
            fields=fields,
            rows=self._struct_rows(fields),
            steps=steps(self.view, renamed(fields[1:] if tag else fields, taken.local)),
            build_steps=build_steps,
            cells=cells,
            cells_name="" if step is None else step.row.name,
            cell_classes=() if cells is None else tuple(map(self._alternative, cells.part.alternatives)),
            alternatives=tuple(map(self._alternative, alternatives)),
            constant=snake_case(name).upper(),
        )

    def _alternative(self, alternative: Alternative) -> AlternativeBlock:
        tag = alternative.fields[0]
        return AlternativeBlock(
            name=alternative.name,
            is_own=self.view.defined_in(alternative) == self.view.version,
            docstring=docstring(alternative.doc, alternative.note),
            tag_name=tag.name,
            tag=str(tag.constants[0]),
            code=hexadecimal(ord(str(tag.constants[0]))),
            attributes=self._attributes(alternative.fields),
            rows=self._struct_rows(alternative.fields),
        )

    def _message_docstring(self, message: Message) -> str:
        callbacks = f"\nSent by {', '.join(message.callbacks)}." if message.callbacks else ""
        release = "" if message.release is None else f"\nSince PostgreSQL {message.release}."
        return docstring(message.doc, message.note) + f"\n\n{self.protocol.official(message)}{release}{callbacks}"

    def _enumeration(self, row: Field) -> Enumeration:
        members = tuple((character, name.upper()) for character, name in row.values.items())
        return Enumeration(class_name(row.name.replace("_", " ")), docstring(row.doc), members)

    def _attributes(self, fields: tuple[Field, ...]) -> tuple[Attribute, ...]:
        lengths = {row.size for row in fields} | {row.repeat for row in fields}
        attributes: list[Attribute] = []
        for row, variable in zip(fields, renamed(fields, taken.local), strict=True):
            if row.name in lengths or len(row.constants) == 1:
                continue
            if isinstance(row.type, PartName) and self.view.part(row.type.name).alternatives:
                attributes += self._columns(row, self.view.part(row.type.name))
                continue
            optional = row.when is not None or row.optional
            attributes.append(
                Attribute(
                    name=row.name,
                    annotation=self.annotation_of(row) + (" | None" if optional else ""),
                    value=variable.name if optional else self.value_of(variable),
                    docstring=docstring(row.doc, self._notation(row) + row.note),
                    optional=optional,
                    bits=tuple(row.bits.items()),
                )
            )
        return tuple(attributes)

    def _notation(self, row: Field) -> str:
        """What the modifiers of a field say of its attribute."""
        text = "Never zero. " if row.nonzero else ""
        if row.when in self.facts:
            fact = next(fact for fact in self.protocol.session if fact.name == row.when)
            return f"{text}There {whether(fact).replace('whether', 'when', 1)}. "
        return text if row.when is None else f"{text}There when `{row.when}` is. "

    def _columns(self, row: Field, part: Part) -> list[Attribute]:
        """The two attributes that hold repeated alternatives: their tags, and the values of those that have one."""
        legend = ", ".join(
            f"{alternative.fields[0].constants[0]} {alternative.name}" for alternative in part.alternatives
        )
        bare = joined(str(other.fields[0].constants[0]) for other in part.alternatives if len(other.fields) == 1)
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
            rest = "".join(f'"{other}" if {row.name} == {hexadecimal(ord(other))} else ' for other in others[:-1])
            return f'"{first}" if {row.name} == {hexadecimal(ord(first))} else {rest}"{others[-1]}"'
        return f"{wrapper}({row.name})" if wrapper else row.name

    def _struct_rows(self, fields: tuple[Field, ...]) -> tuple[tuple[str, str], ...]:
        docs = {row.name: f" * {row.doc!r}" if row.doc else "" for row in fields}
        return tuple((row.name, self._construct(row, fields) + docs[row.name]) for row in fields)

    def _construct(self, row: Field, fields: tuple[Field, ...]) -> str:
        """The construct of one row of a layout."""
        expression = self._construct_once(row, fields)
        if row.repeat is not None:
            expression = f"Array(this.{row.repeat}, {expression})"
        if row.when in self.facts:
            tells = (other.name for other in fields if other.when == row.when and len(other.constants) != 1)
            other = f", this.{next(tells)}" if len(row.constants) == 1 else ""
            expression = f'IfSession("{row.when}", {expression}{other})'
        elif row.when is not None:
            expression = f"IfPresent(this.{row.when}, {expression})"
        return expression

    def _construct_once(self, row: Field, fields: tuple[Field, ...]) -> str:
        if isinstance(row.type, String):
            return "String"
        if isinstance(row.type, Byten):
            return "GreedyBytes" if row.size == REST else f"Bytes(this.{row.size})"
        if isinstance(row.type, PartName):
            alternatives = self.view.part(row.type.name).alternatives
            return f"_{snake_case(row.type.name).upper()}" if alternatives else f"{row.type.name}.struct"
        if row.values:
            return f"Char({self.annotation_of(row)})"
        integer = _CONSTRUCT_INTS[fixed(self.view, row).format]
        if isinstance(row.type, Byte1) and row.type.constants:
            constants = "".join(row.type.constants)
            if row.optional:
                return f'OptionalChar("{constants}")'
            return f'Const(b"{constants}")' if len(constants) == 1 else f'Char("{constants}")'
        if row.constants:
            return f"Const({row.constants[0]}, {integer})"
        counted = next((other for other in fields if row.name in (other.size, other.repeat)), None)
        if counted is not None:
            return f"Rebuild({integer}, len_(this.{counted.name}))"
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

    def guards_of(self, run: Run) -> list[str]:
        """The conditions under which attributes are refused though they fit their width."""
        guards = []
        for item in run.fields:
            name = f"self.{item.row.name}"
            if item.choices:
                guards.append(f"{name} not in {tuple(map(chr, item.choices))}")
            elif item.row.values:
                guards.append(f"{name} not in {tuple(item.row.values)}")
            elif item.row.boolean:
                guards.append(f"{name} not in (0, 1)")
            elif item.row.nonzero:
                guards.append(f"not {name}")
        return guards

    def packed(self, item: Fixed, fields: tuple[Field, ...]) -> str:
        """The expression to pack one integer of a layout."""
        if item.constant is not None:
            return _literal(item)
        if item.choices or item.row.values:
            return f"ord(self.{item.row.name})"
        counted = next((row for row in fields if item.row.name in (row.size, row.repeat)), None)
        if counted is None:
            return f"self.{item.row.name}"
        if isinstance(counted.type, PartName) and self.view.part(counted.type.name).alternatives:
            return "len(self.kinds)"
        return f"len(self.{counted.name})"

    def cells_of(self, step: Single) -> Cells:
        """What the loop over repeated alternatives needs to know."""
        assert step.part is not None
        return cells_of(self.view, step.part)


def cells_of(view: View, part: Part) -> Cells:
    """What the loop over the repeated alternatives of a part needs to know."""
    valued = [other.fields for other in part.alternatives if len(other.fields) > 1]
    bare = [other.fields for other in part.alternatives if len(other.fields) == 1]
    length = fixed(view, valued[0][1]).format if valued else "i"
    return Cells(
        part=part,
        tag=part.alternatives[0].fields[0].name,
        value=valued[0][-1].name if valued else "",
        valued=tuple(ord(str(tag.constants[0])) for tag, *_ in valued),
        bare=tuple(ord(str(tag.constants[0])) for tag, *_ in bare),
        format=length.upper(),
        header=calcsize(f">B{length}"),
    )


def annotation_of(types: Mapping[str, NamedType], row: Field) -> str:
    """The type of a field's attribute, without None."""
    if row.values:
        return class_name(row.name.replace("_", " "))
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


def checks_of(run: Run, values: bool = False) -> list[str]:
    """The conditions under which integers that were unpacked are refused, named values only if asked for."""
    checks = []
    for item in run.fields:
        codes = item.choices or (tuple(map(ord, item.row.values)) if values else ())
        if item.constant is not None:
            checks.append(f"{item.row.name} != {_literal(item)}")
        elif codes:
            checks.append(" and ".join(f"{item.row.name} != {hexadecimal(code)}" for code in codes))
        elif item.row.boolean:
            checks.append(f"{item.row.name} > 1")
        elif item.row.nonzero:
            checks.append(f"not {item.row.name}")
    return checks


def docstring(*paragraphs: str) -> str:
    """The text of a docstring: paragraphs, wrapped, the empty ones left out."""
    return "\n\n".join(textwrap.fill(text.strip(), 110) for text in paragraphs if text.strip())


def whether(fact: SessionFact) -> str:
    """What a session fact says, to go on with in a sentence."""
    return f"whether {lowered(fact.doc).rstrip('.')}"


def fact_docstring(protocol: Protocol, fact: SessionFact) -> str:
    """The docstring of the attribute that holds a session fact, of a decoder or of its state."""
    if fact in protocol.kept_facts:
        return docstring(f"For the message that comes next: {whether(fact)}.")
    return docstring(f"W{whether(fact)[1:]}.")


def joined(names: Iterable[str]) -> str:
    """a, b and c."""
    *rest, last = [*names] or [""]
    return f"{', '.join(rest)} and {last}" if rest else last


def quoted(text: str) -> str:
    """A docstring as it stands in the code, in column 0."""
    text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if text.endswith('"'):
        text = f'{text[:-1]}\\"'
    return f'"""{text}\n"""' if "\n" in text else f'"""{text}"""'


def hexadecimal(code: int) -> str:
    """A byte as the code shows it."""
    return f"0x{code:02X}"


def any_of(name: str, codes: tuple[int, ...]) -> str:
    """Whether a variable is one of some bytes."""
    return " or ".join(f"{name} == {hexadecimal(code)}" for code in codes) or "False"


def none_of(name: str, codes: tuple[int, ...]) -> str:
    """Whether a variable is none of some characters."""
    return f"{name} not in {tuple(map(chr, codes))}"


def _literal(item: Fixed) -> str:
    assert item.constant is not None
    return hexadecimal(item.constant) if isinstance(item.row.type, Byte1) else str(item.constant)
