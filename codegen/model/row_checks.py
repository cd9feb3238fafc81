"""Checks of a layout's rows."""

from __future__ import annotations

from codegen.model import taken
from codegen.model.layouts import REST, UNTIL_ZERO, Alternative, Field, Message, Part, attributes
from codegen.model.model import Protocol
from codegen.model.nodes import Findings, allowed
from codegen.model.notation import Byte1, Byten, Int, PartName, String, Unknown


def check_rows(protocol: Protocol, layout: Message | Part | Alternative, findings: Findings) -> None:
    """Add a finding for every inconsistency of a layout's rows."""
    _Rows(protocol, layout, findings).check()


class _Rows:
    def __init__(self, protocol: Protocol, layout: Message | Part | Alternative, findings: Findings) -> None:
        self.protocol = protocol
        self.facts = {fact.name: fact for fact in protocol.session}
        self.layout = layout
        self.fields = layout.fields
        self.names = [row.name for row in layout.fields]
        self.is_messages = isinstance(layout, Message)
        self.findings = findings
        # The rows so far, and the rows that measure another row.
        self.seen: dict[str, Field] = {}
        self.used: set[str] = set()

    def check(self) -> None:
        for index, row in enumerate(self.fields):
            if row.name in self.seen and (self.seen[row.name].until or row.since) >= row.since:
                self.add(row, f" is defined twice, first in line {self.seen[row.name].place.line}")
            if row.name != "tag" or index:
                self.name(row)
            for bit in row.bits.values():
                bit_names = [name for other in self.seen.values() for name in other.bits.values()]
                what = "another field or bit" if bit in (*self.names, *bit_names) else taken.attribute(bit)
                if what is not None:
                    self.add(row, f": the bit's name {bit!r} is taken by {what}")
            self.since(row)
            if row.when is not None:
                self.when(row, row.when)
            is_in_batches = row in attributes(self.fields) and not isinstance(self.layout, Alternative)
            if row.batch_column is not None and not is_in_batches:
                self.add(row, ": 'batch column' belongs to a field that batches have a column for only")
            if row.looks_up is not None and not self.is_messages:
                self.add(row, ": 'looks up' belongs to the fields of a message only")
            # An invalid type allows no further checks.
            if not isinstance(row.type, Unknown):
                self.extent(row)
                self.named_type(row)
                self.value(row)
            if row.optional:
                self.optional(row, self.fields[index + 1 :])
            if row.name not in self.seen or self.seen[row.name].until is not None:
                self.seen[row.name] = row

    def add(self, row: Field, text: str) -> None:
        self.findings.add(row.place, f"{self.layout.name}.{row.name}{text}")

    def name(self, row: Field) -> None:
        what = taken.attribute(row.name)
        if not isinstance(self.layout, Alternative) and row.name in self.facts:
            what = "a session fact"
        if what is not None:
            self.add(row, f": the name {row.name!r} is taken by {what}")

    def since(self, row: Field) -> None:
        newest, since = len(self.protocol.versions), self.layout.since
        if row.since > newest and row.since != since:
            self.add(row, f" is since version {row.since}, but the newest is {newest}")
        if row.since < since:
            self.add(row, f" is since version {row.since}, but what it belongs to is since {since}")
        if row.until is not None and row.until > newest:
            self.add(row, f" is until version {row.until}, but the newest is {newest}")

    def when(self, row: Field, name: str) -> None:
        if name in self.facts and not self.is_messages:
            self.add(row, f": only the fields of a message can depend on {name}, not those of a part")
        elif name in self.facts and self.facts[name].values:
            self.add(row, f": no field can depend on {name}, which has values")
        elif name in self.facts:
            if all(other.when != name for other in attributes(self.fields)):
                self.add(row, f": only constants and lengths depend on {name}, so no attribute shows whether it holds")
            if row.since < (fact_since := self.facts[name].since) <= len(self.protocol.versions):
                self.add(row, f" is since version {row.since}, but {name} is known since {fact_since} only")
        elif name not in self.seen or not self.seen[name].optional:
            earlier = [name for name, other in self.seen.items() if other.optional]
            problem = "is always present" if name in self.seen else self.absence(name)
            self.add(row, f": 'when' names {name!r}, which {problem}; {allowed([*self.facts, *earlier], name)}")

    def absence(self, name: str) -> str:
        return "comes later" if name in self.names else "does not exist"

    def extent(self, row: Field) -> None:
        """A Byten needs a size, a repeated row a count: each an earlier integer that is used once."""
        if isinstance(row.type, Int) and row.type.letter is not None and row.repeat is None:
            self.add(row, f" is {row.type}, so it needs 'repeat'")
        if row.may_be_null and not (isinstance(row.type, Byten) and row.size not in (None, REST)):
            self.add(row, ": 'may be null' belongs to a Byten whose size an earlier integer says")
        if row.repeat is not None and (not isinstance(row.type, PartName | Int | String) or row.constants):
            self.add(row, ": 'repeat' belongs to an integer without constant, a text or a part only")
            return
        if isinstance(row.type, Byten) and row.type.count is not None:
            if row.size is not None:
                self.add(row, f": {row.type} has its size")
            if row.constants and row.holds_text:
                self.add(row, ": 'holds text' belongs to bytes without constant only")
            return
        if isinstance(row.type, Byten) and row.size is None:
            self.add(row, f" has no 'size'; allowed: an earlier integer, or {REST}")
        if not isinstance(row.type, Byten) and row.size is not None:
            self.add(row, ": 'size' belongs to a Byten only")
            return
        if row.holds_text and not isinstance(row.type, Byten):
            self.add(row, ": 'holds text' belongs to a Byten only")
        if row.size == REST:
            if row is not self.fields[-1] or not self.is_messages:
                self.add(row, ": only the last field of a message can take the rest")
            return
        if row.repeat == UNTIL_ZERO:
            part = next((part for part in self.protocol.parts if part.name == str(row.type)), None)
            if isinstance(row.type, Int) or (part is not None and part.alternatives):
                self.add(row, f": 'repeat: {UNTIL_ZERO}' belongs to a text or a part with 'fields' only")
            elif row.when is not None:
                self.add(row, ": 'repeat' cannot go with 'when'")
            return
        if row.ended_by:
            self.ending(row)
            return
        if row.repeat == REST:
            self.add(
                row, f": 'repeat' names an earlier integer, or reads '{UNTIL_ZERO}'; only a 'size' can be {REST!r}"
            )
            return
        for key, target in (("size", row.size), ("repeat", row.repeat)):
            if target is not None:
                self.length(row, key, target)
                self.used.add(target)

    def ending(self, row: Field) -> None:
        """The constant that ends a list is the row after the list, and always present."""
        part = next((part for part in self.protocol.parts if part.name == str(row.type)), None)
        after = self.fields[self.fields.index(row) + 1 :][:1]
        constants = [
            other.name for other in after if other.is_constant and other.when is None and other.measures is None
        ]
        if not isinstance(row.type, PartName) or (part is not None and part.alternatives):
            self.add(row, f": 'repeat: {row.repeat}' belongs to a part with 'fields' only")
        elif row.when is not None:
            self.add(row, ": 'repeat' cannot go with 'when'")
        elif row.ended_by not in constants:
            text = f": 'repeat' names {row.ended_by!r}, which is not the constant after the list"
            self.add(row, f"{text}; {allowed(constants, row.ended_by)}")

    def length(self, row: Field, key: str, target: str) -> None:
        integers = [name for name, other in self.seen.items() if self.is_plain_integer(other)]
        if target in self.seen and self.findings.has(self.seen[target].place):
            return
        if target not in integers:
            problem = "is not a plain integer" if target in self.seen else self.absence(target)
            self.add(row, f": {key!r} names {target!r}, which {problem}; {allowed(integers, target)}")
        elif target in self.used:
            self.add(row, f": {key!r} names {target}, which is used already")
        elif row.when is not None:
            self.add(row, f": {key!r} cannot go with 'when'")
        elif row.since != self.seen[target].since or row.until != self.seen[target].until:
            self.add(row, f": {key!r} names {target}, which is in other versions")
        elif row.may_be_null and not self.protocol.signed(self.seen[target]):
            self.add(row, f": 'may be null' needs a size that can be -1, and {target} is unsigned")
        elif (since := self.seen[target].since) > row.since:
            self.add(row, f": {key!r} names {target}, which is since version {since} only")

    def is_plain_integer(self, row: Field) -> bool:
        """Return whether an integer can measure another row."""
        named = self.protocol.types.get(row.named_type or "")
        return isinstance(row.type, Unknown) or (
            isinstance(row.type, Int)
            and not row.constants
            and (row.named_type is None or (named is not None and named.python == "int" and not named.values))
            and row.when is None
            and row.repeat is None
            and row.measures is None
            and not (row.bits or row.values or row.boolean or row.nonzero)
        )

    def named_type(self, row: Field) -> None:
        named, types = row.named_type, self.protocol.types
        is_printed = isinstance(row.type, Int) and row.type.name is not None
        if row.is_named is not None and (not isinstance(row.type, Int) or is_printed or row.constants):
            self.add(row, ": 'is' belongs to an integer without name and constant only")
        elif not isinstance(row.type, Int) or named is None:
            return
        elif named not in types:
            self.add(row, f": {named!r} is not a named type; {allowed(types, named)}")
        elif types[named].base not in ("", row.type.base):
            self.add(row, f": {named} is {types[named].base}, not {row.type.base}")

    def value(self, row: Field) -> None:
        is_byte = isinstance(row.type, Byte1) or (isinstance(row.type, Int) and row.type.base == "Int8")
        is_free = not row.constants and row.named_type is None and row.repeat is None
        present = [key for key in ("boolean", "bits", "values") if getattr(row, key)]
        for key in present:
            if not (is_byte and is_free):
                self.add(row, f": {key!r} belongs to an Int8 or Byte1 without constant only")
        if len(present) > 1:
            self.add(row, ": only one of 'boolean', 'bits' and 'values' is allowed")
        if row.listed_in is not None and not row.values:
            self.add(row, ": 'listed in' belongs to a row with 'values' only")
        companions = [key for key in ("repeat", "measures", *present) if getattr(row, key)]
        if row.nonzero and (not isinstance(row.type, Int) or row.constants or companions):
            self.add(row, f": 'nonzero' belongs to an integer without constant only{_beside(companions)}")
        if row.measures is not None and not (
            isinstance(row.type, Int) and row.type.base == "Int32" and self.is_messages
        ):
            self.add(row, ": 'measures' belongs to an Int32 of a message only")
        if row.measures is not None and (row.repeat is not None or row.when is not None):
            self.add(row, ": 'measures' belongs to a row without 'repeat' and 'when' only")
        elif row.measures is not None and self.fields.index(row) != int(self.names[0] == "tag"):
            self.add(row, ": 'measures' belongs to the first row after the tag only")
        if row.any_character and not (isinstance(row.type, Byte1) and is_free and not row.boolean and not row.bits):
            self.add(row, ": 'any character' belongs to a Byte1 without constant only, alone or with 'values'")
        if isinstance(row.type, Byte1) and is_free and not present and not row.any_character:
            self.add(row, ": a Byte1 needs a constant, 'boolean', 'bits', 'values' or 'any character'")

    def optional(self, row: Field, rest: tuple[Field, ...]) -> None:
        """The row after an optional tag must have a constant that shows the tag's absence."""
        if any(isinstance(other.type, Unknown) for other in (row, *rest)):
            return
        if not isinstance(row.type, Byte1) or len(row.constants) < 2 or row.when is not None:
            self.add(row, ": 'optional' belongs to a Byte1 with two or more constants only")
            return
        depending = tuple(other for other in rest if other.when == row.name)
        after = rest[len(depending) :]
        known_names = (None, *self.facts, *self.names)
        if any(other.when not in known_names for other in rest):
            return  # The row that names nothing has its own finding.
        if not depending or rest[: len(depending)] != depending:
            self.add(row, f": the fields that follow it at once must be those with 'when: {row.name}'")
        elif not after or not isinstance(after[0].type, Byte1) or after[0].optional or after[0].when is not None:
            self.add(row, ": a constant of one byte must follow, to show whether it is present")
        elif set(after[0].constants) & set(row.constants):
            self.add(row, f" and {after[0].name} share a constant, so it is ambiguous which is present")


def _beside(keys: list[str]) -> str:
    return f", not beside {keys[0]!r}" if keys else ""
