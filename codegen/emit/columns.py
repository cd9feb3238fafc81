"""The columnar decoder's files: each version's columns as data, and its compiled kernel, from the same model as parse.

A column is a field name: every message that has a field of that name fills it, in the rows where it is such a message.
What is no attribute of a message's class (tags, counts, lengths, constants) is no column either. So a field that is
added to the spec is a new column, and a line in a kernel, without a hand on either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from codegen.emit.python_source import NOTICE, any_of, docstring, fact_docstring, hexadecimal, quoted
from codegen.emit.steps import Fixed, Run, Single, Step, steps
from codegen.spec.model import Field, Message, Part, Protocol, parts_used
from codegen.spec.names import snake_case
from codegen.spec.notation import Byte1, Byten, Int, PartName, String
from codegen.spec.versions import view

_HERE = Path(__file__).parent

# The names that a kernel's functions have for their own: a field of such a name has an underscore after it.
_TAKEN = {
    "data", "offset", "end", "row", "facts", "out", "cell", "size", "stop", "count", "total", "kinds", "starts",
    "lengths", "items", "index", "item", "copy", "store", "fetch", "uint8", "uint16", "uint32", "uint64", "int8",
    "int16", "int32", "int64",
}  # fmt: skip


_SPAN_WIDTH = 24
"""The bytes of where a text is: three integers."""


@dataclass(frozen=True)
class ColumnSource:
    """A column, as plan.py in the package has it."""

    name: str
    kind: str
    width: int = 0
    signed: bool = False
    scalar: str = ""
    valued: bytes = b""
    fields: tuple[ColumnSource, ...] = ()
    part: str = ""
    place: int = 0

    @property
    def constant(self) -> str:
        """The kernel's name for its number."""
        return self.name.upper()

    @property
    def is_fixed(self) -> bool:
        return self.kind in ("char", "bool", "int")

    def __str__(self) -> str:
        shown = [f"name={self.name!r}", f"kind={self.kind!r}"]
        for name in ("width", "signed", "scalar", "valued", "part", "place"):
            if value := getattr(self, name):
                shown.append(f"{name}={value!r}")
        if self.fields:
            shown.append(f"fields=({''.join(f'{item}, ' for item in self.fields)})")
        return f"Column({', '.join(shown)})"


@dataclass(frozen=True)
class MessageSource:
    """A message of a version, and how the kernel reads it."""

    name: str
    tag: str
    version: int
    when: str
    sets: str
    clears: str
    columns: dict[str, int]
    steps: tuple[Step, ...]
    docstring: str
    has_cells: bool

    @property
    def function(self) -> str:
        """The kernel's function that reads it."""
        return "_" + self.name.lower().replace(" ", "_")


class _Kernel:
    """The names and expressions of one version's kernel."""

    def __init__(self, protocol: Protocol, version: int) -> None:
        self.protocol = protocol
        self.version = version
        self.columns: list[ColumnSource] = []
        self.parts: dict[str, Part] = {}
        self.messages = [self._message(message, since) for message, since in self._layouts()]

    def _layouts(self) -> list[tuple[Message, int]]:
        """The messages of the version, and those of later ones that a session fact lets in."""
        found = []
        for message in self.protocol.messages:
            since = max(message.since, self.version)
            if message.comes_in(self.version):
                now = view(self.protocol, since)
                found.append((next(other for other in now.messages if other.name == message.name), since))
        return found

    def _message(self, message: Message, since: int) -> MessageSource:
        parts = {part.name: part for part in view(self.protocol, since).parts}
        columns = {
            row.name: self._number(self._column(row, parts), message)
            for row in message.fields
            if row.name not in _lengths(message.fields) and len(row.constants) != 1
        }
        self.parts |= {name: parts[name] for name in parts_used(message.fields)}
        return MessageSource(
            name=message.name,
            tag=message.tag,
            version=since,
            when=(message.also_when or "") if message.since > self.version else "",
            sets=message.sets or "",
            clears=message.clears or "",
            columns=columns,
            steps=steps(self.protocol, message.fields[1:]),
            docstring=message.doc,
            has_cells=any(self.columns[number].kind == "cells" for number in columns.values()),
        )

    def _number(self, column: ColumnSource, message: Message) -> int:
        """The column's number; another name where a field of that name in another message is of another type."""
        names = {other.name: number for number, other in enumerate(self.columns)}
        if column.name in names and self.columns[names[column.name]] != column:
            column = replace(column, name=f"{message.name.lower().replace(' ', '_')}_{column.name}")
        if column.name not in names:
            self.columns.append(column)
            return len(self.columns) - 1
        return names[column.name]

    def _column(self, row: Field, parts: dict[str, Part]) -> ColumnSource:
        if isinstance(row.type, String):
            return ColumnSource(row.name, "text")
        if isinstance(row.type, Byten):
            return ColumnSource(row.name, "bytes")
        if isinstance(row.type, PartName):
            return self._part_column(row, parts[row.type.name], parts)
        scalar = self.protocol.types[row.named_type].python if row.named_type else ""
        width = row.type.width if isinstance(row.type, Int) else 1
        scalar = "" if scalar == "int" else scalar
        if row.repeat is not None:
            return ColumnSource(row.name, "ints", width, self.protocol.signed(row), scalar)
        if row.boolean:
            return ColumnSource(row.name, "bool", 1)
        if row.values or (isinstance(row.type, Byte1) and row.constants):
            return ColumnSource(row.name, "char", 1)
        return ColumnSource(row.name, "int", width, self.protocol.signed(row), scalar)

    def _part_column(self, row: Field, part: Part, parts: dict[str, Part]) -> ColumnSource:
        """A row's values, or a list of items; what else a part could be has no column yet, and is an error."""
        shapes = [step.kind for step in steps(self.protocol, part.fields)]
        if row.repeat is None and shapes == ["run", "cells"]:
            cells = next(inner for inner in part.fields if isinstance(inner.type, PartName))
            assert isinstance(cells.type, PartName)
            alternatives = parts[cells.type.name].alternatives
            valued = "".join(str(other.fields[0].constants[0]) for other in alternatives if len(other.fields) > 1)
            return ColumnSource(row.name, "cells", valued=valued.encode("ascii"), part=part.name)
        if row.repeat is not None and set(shapes) <= {"run", "string", "bytes"}:
            fields = [
                self._column(inner, parts)
                for inner in part.fields
                if inner.name not in _lengths(part.fields) and len(inner.constants) != 1
            ]
            return ColumnSource(row.name, "items", fields=_placed(fields), part=part.name)
        raise ValueError(f"{row.place}: {row.name} is a {part.name} of {', '.join(shapes)}, which has no columns yet")

    # What the templates ask.

    @property
    def cells_columns(self) -> list[ColumnSource]:
        return [column for column in self.columns if column.kind == "cells"]

    @property
    def dispatch(self) -> list[MessageSource]:
        """The messages in the order in which tags are compared: those with a row's values come most often."""
        return sorted(self.messages, key=lambda message: not message.has_cells)

    @property
    def cells_parts(self) -> list[tuple[Part, Fixed, Any]]:
        """The parts that are a row's values: the part, its count, and what the loop over the values needs to know."""
        from codegen.emit.python_source import Source

        source = Source(self.protocol)
        found = []
        for name in dict.fromkeys(column.part for column in self.cells_columns):
            run, cells = steps(self.protocol, self.parts[name].fields)
            assert isinstance(run, Run)
            assert isinstance(cells, Single)
            found.append((self.parts[name], run.fields[-1], source.cells_of(cells)))
        return found

    @property
    def item_parts(self) -> list[tuple[Part, tuple[Step, ...], ColumnSource]]:
        """The parts that lists are made of: the part, its steps, and the column of the list."""
        found = {column.part: column for column in self.columns if column.kind == "items"}
        return [(self.parts[name], steps(self.protocol, self.parts[name].fields), found[name]) for name in found]

    def spans_of(self, message: MessageSource) -> list[ColumnSource]:
        """The columns of a message whose values have no fixed width, but for those of rows."""
        columns = [self.columns[number] for number in message.columns.values()]
        return [column for column in columns if not column.is_fixed and column.kind != "cells"]

    def column(self, message: MessageSource, row: Field) -> ColumnSource | None:
        """The column of a field; None if it has none."""
        number = message.columns.get(row.name)
        return None if number is None else self.columns[number]

    def checks_of(self, run: Run) -> list[str]:
        """The conditions under which integers are refused."""
        checks = []
        for item in run.fields:
            name = local(item.row.name)
            if item.constant is not None:
                constant = hexadecimal(item.constant) if isinstance(item.row.type, Byte1) else item.constant
                checks.append(f"{name} != {constant}")
            elif item.choices:
                checks.append(_none_of(name, item.choices))
            elif item.row.values:
                checks.append(_none_of(name, tuple(map(ord, item.row.values))))
            elif item.row.boolean:
                checks.append(f"{name} > 1")
            elif item.row.nonzero:
                checks.append(f"{name} == 0")
        return checks


def _item_width(field: ColumnSource) -> int:
    return field.width if field.is_fixed else _SPAN_WIDTH


def _placed(fields: list[ColumnSource]) -> tuple[ColumnSource, ...]:
    """What items have, with the place of each in a block: texts as spans, then integers, the widest first."""
    places, place = {}, 0
    for field in sorted(fields, key=_item_width, reverse=True):
        places[field.name] = place
        place += _item_width(field)
    return tuple(replace(field, place=places[field.name]) for field in fields)


def local(name: str) -> str:
    """The variable that holds a field."""
    return f"{name}_" if name in _TAKEN else name


def emit_columnar(protocol: Protocol) -> dict[str, str]:
    """Return the files of the sub-package by their paths within the package: the session, plans and kernels."""
    texts: dict[str, str] = {}
    kernels = [_Kernel(protocol, version.number) for version in protocol.versions]
    for kernel in kernels:
        texts[f"columnar/kernel_v{kernel.version}.py"] = _render("columnar_kernel.py.j2", kernel, notice=NOTICE)
    texts["columnar/__init__.py"] = _render("columnar_init.py.j2", kernels[0], notice=NOTICE)
    texts["columnar/plans.py"] = _render("columnar_plans.py.j2", kernels[0], notice=NOTICE, kernels=kernels)
    return texts


def _render(template: str, kernel: _Kernel, **values: Any) -> str:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
    )
    environment.globals.update(
        any_of=any_of,
        column_of=kernel.column,
        checks_of=kernel.checks_of,
        docstring=docstring,
        fact_docstring=fact_docstring,
        hexadecimal=hexadecimal,
        is_checked=_is_checked,
        lengths_of=_lengths_of,
        kernel=kernel,
        load_of=_load_of,
        local=local,
        offsets_of=_offsets_of,
        quoted=quoted,
        snake_case=snake_case,
        ord=ord,
    )
    return environment.get_template(template).render(**values)


def _lengths(fields: tuple[Field, ...]) -> set[str | None]:
    return {row.size for row in fields} | {row.repeat for row in fields}


def _lengths_of(items: tuple[Step, ...]) -> set[str | None]:
    """The fields that say how long others of a part are."""
    return _lengths(tuple(step.row for step in items if isinstance(step, Single)))


def _is_checked(item: Fixed) -> bool:
    """Whether some values of an integer are refused."""
    row = item.row
    return item.constant is not None or bool(item.choices or row.values) or row.boolean or row.nonzero


def _load_of(item: Fixed) -> str:
    """The function that reads an integer."""
    width = {"b": 1, "h": 2, "i": 4, "q": 8}[item.format.lower()]
    return f"{'int' if item.format.islower() else 'uint'}{8 * width}"


def _offsets_of(run: Run) -> list[int]:
    """Where each integer of a run lies in it."""
    sizes = [{"b": 1, "h": 2, "i": 4, "q": 8}[item.format.lower()] for item in run.fields]
    return [sum(sizes[:index]) for index in range(len(sizes))]


def _none_of(name: str, codes: tuple[int, ...]) -> str:
    return " and ".join(f"{name} != {hexadecimal(code)}" for code in codes)
