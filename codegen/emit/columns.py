"""The columnar decoder's files: each version's columns as data, and its compiled kernel, from the same model as parse.

A column is a field name: every message that has a field of that name fills it, in the rows where it is such a message.
What is no attribute of a message's class (tags, counts, lengths, constants) is no column either. Of a part that is
there once each field is a column, `new_flags`, but a row's values are called as the part is. So a field that is added
to the spec is a new column, and a line in a kernel, without a hand on either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codegen.emit.blocks import Cells
from codegen.emit.python_source import (
    NOTICE,
    any_of,
    cells_of,
    checks_of,
    docstring,
    fact_docstring,
    hexadecimal,
    quoted,
)
from codegen.emit.steps import Conditional, Fixed, Run, Single, Step, Tagged, renamed, steps
from codegen.shared import templates
from codegen.spec.model import Field, Finding, Message, Part, SpecError
from codegen.spec.names import class_name, snake_case
from codegen.spec.notation import Byte1, Byten, PartName, String
from codegen.spec.versions import View

_HERE = Path(__file__).parent

_ITEMS = "integers, texts and bytes"
_OF_BATCHES = ("error", "data")
"""The columns that batches have for messages that are refused."""
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
    expand: str = ""
    path: str = ""
    place: int = 0

    @property
    def constant(self) -> str:
        """The kernel's name for its place in the table."""
        return f"{self.name.upper()}_COLUMN"

    @property
    def is_fixed(self) -> bool:
        return self.kind in ("char", "bool", "int")

    def __str__(self) -> str:
        shown = [f"name={self.name!r}", f"kind={self.kind!r}"]
        for name in ("width", "signed", "scalar", "valued", "expand", "path", "place"):
            if value := getattr(self, name):
                shown.append(f"{name}={value!r}")
        if self.fields:
            shown.append(f"fields=({''.join(f'{item}, ' for item in self.fields)})")
        return f"Column({', '.join(shown)})"


@dataclass(frozen=True)
class MessageSource:
    """A message of a version, and how the kernel reads it."""

    message: Message
    version: int
    when: str
    columns: dict[str, int]
    """By the name of the row, which `_inlined` may have made longer."""
    steps: tuple[Step, ...]
    has_cells: bool

    @property
    def function(self) -> str:
        """The kernel's function that reads it."""
        return f"_{snake_case(class_name(self.message.name))}"


class _Kernel:
    """The names and expressions of one version's kernel."""

    def __init__(self, versions: tuple[View, ...], now: View) -> None:
        self.protocol = now.protocol
        self.version = now.version
        self.columns: list[ColumnSource] = []
        self.functions: list[tuple[Part, View, str]] = []
        """The parts that have a function of their own: a row's values, and the items of lists."""
        self.messages = [self._message(message, shown) for message, shown in self._layouts(versions)]

    def _layouts(self, versions: tuple[View, ...]) -> Iterator[tuple[Message, View]]:
        """The messages of the version, and those of later ones that a session fact lets in."""
        for message in versions[-1].messages:
            if message.sender == "server" and message.comes_in(self.version):
                shown = next(view for view in versions[self.version - 1 :] if view.layout(message.name))
                layout = shown.layout(message.name)
                assert isinstance(layout, Message)
                yield layout, shown

    def _message(self, message: Message, shown: View) -> MessageSource:
        columns: dict[str, int] = {}
        for name, column in self._columns(message.fields, shown):
            columns[name] = self._number(column, message, set(columns.values()))
        return MessageSource(
            message=message,
            version=shown.version,
            when=(message.also_when or "") if shown.version > self.version else "",
            columns=columns,
            steps=_inlined(shown, steps(shown, renamed(message.fields[1:], local))),
            has_cells=any(self.columns[number].kind == "cells" for number in columns.values()),
        )

    def _number(self, column: ColumnSource, message: Message, taken: set[int]) -> int:
        """The column's number; another name where one of that name is of another type, or is the message's already."""
        numbers = {other.name: number for number, other in enumerate(self.columns)}
        own = f"{snake_case(class_name(message.name))}_{column.name}"
        while column.name in numbers or column.name in _OF_BATCHES:
            number = numbers.get(column.name)
            if number is not None and self.columns[number] == column and number not in taken:
                return number
            column = replace(column, name=f"{column.name}_" if column.name.startswith(own) else own)
        self.columns.append(column)
        return len(self.columns) - 1

    def _columns(
        self, fields: tuple[Field, ...], shown: View, within: str = "", name: str = ""
    ) -> Iterator[tuple[str, ColumnSource]]:
        """The columns of a layout, those of the parts that are there once among them, each with its row's name."""
        for row in _values(fields):
            if isinstance(row.type, PartName) and row.repeat is None:
                inner = shown.part(row.type.name).fields
                yield from self._columns(inner, shown, f"{within}{row.name}__", f"{name}{row.name}_")
                continue
            column = self._column(row, shown, path=f"{within}{row.name}".replace("__", "."))
            # A row's values are the part that they are in.
            own = name.rstrip("_") if within and column.kind == "cells" else name + row.name
            yield within + local(row.name), replace(column, name=own)

    def _column(self, row: Field, shown: View, path: str) -> ColumnSource:
        if isinstance(row.type, String):
            return ColumnSource(row.name, "text")
        if isinstance(row.type, Byten):
            return ColumnSource(row.name, "bytes")
        if isinstance(row.type, PartName):
            return self._repeated(row, shown.part(row.type.name), shown, path)
        scalar = self.protocol.types[row.named_type].python if row.named_type else ""
        scalar = "" if scalar == "int" else scalar
        if row.repeat is not None:
            return ColumnSource(row.name, "ints", row.width, self.protocol.signed(row), scalar)
        if row.boolean:
            return ColumnSource(row.name, "bool", 1)
        if row.values or (isinstance(row.type, Byte1) and row.constants):
            return ColumnSource(row.name, "char", 1)
        return ColumnSource(row.name, "int", row.width, self.protocol.signed(row), scalar)

    def _repeated(self, row: Field, part: Part, shown: View, path: str) -> ColumnSource:
        """A row's values, or a list of items; what else a part could be has no column, which is a finding."""
        if part.alternatives:
            self._function(part, shown)
            valued = [other.fields for other in part.alternatives if len(other.fields) > 1]
            tags = "".join(str(tag.constants[0]) for tag, *_ in valued)
            value = valued[0][-1].name if valued else ""
            return ColumnSource(row.name, "cells", valued=tags.encode("ascii"), path=f"{path}[{{}}].{value}")
        shapes = [step.kind for step in steps(shown, part.fields)]
        if not set(shapes) <= {"run", "string", "bytes"}:
            text = f"{row.name} repeats {part.name}, of {', '.join(shapes)}; columns hold lists of {_ITEMS} only"
            raise SpecError([Finding(row.place, text)])
        fields = [self._column(inner, shown, path) for inner in _values(part.fields)]
        return ColumnSource(row.name, "items", fields=_placed(fields), expand=f"{self._function(part, shown)}_items")

    def _function(self, part: Part, shown: View) -> str:
        """The name of a part's function; of two versions of a part in one kernel each has its own."""
        for known, _, name in self.functions:
            if known == part:
                return name
        same = sum(known.name == part.name for known, _, _ in self.functions)
        self.functions.append((part, shown, f"{snake_case(part.name)}_{'_' * same}"))
        return self.functions[-1][2]

    # What the templates ask.

    @property
    def cells_columns(self) -> list[ColumnSource]:
        return [column for column in self.columns if column.kind == "cells"]

    @property
    def dispatch(self) -> list[MessageSource]:
        """The messages in the order in which tags are compared: those with a row's values come most often."""
        return sorted(self.messages, key=lambda message: not message.has_cells)

    @property
    def cells_parts(self) -> list[tuple[Part, str, Cells]]:
        """The parts that are a row's values: each with its function and what the loop over them needs to know."""
        return [(part, name, cells_of(shown, part)) for part, shown, name in self.functions if part.alternatives]

    @property
    def item_parts(self) -> list[tuple[Part, str, tuple[Step, ...], tuple[ColumnSource, ...]]]:
        """The parts that lists are made of: each with its function, its steps, and its fields as columns."""
        fields = {column.expand: column.fields for column in self.columns if column.expand}
        return [
            (part, name, steps(shown, renamed(part.fields, local)), fields[f"{name}_items"])
            for part, shown, name in self.functions
            if not part.alternatives
        ]

    def function_of(self, step: Single) -> str:
        """The function of the part that a step repeats."""
        return next(name for part, _, name in self.functions if part == step.part)

    def spans_of(self, message: MessageSource) -> list[ColumnSource]:
        """The columns of a message whose values have no fixed width, but for those of rows."""
        columns = [self.columns[number] for number in message.columns.values()]
        return [column for column in columns if not column.is_fixed and column.kind != "cells"]

    def column(self, message: MessageSource, row: Field) -> ColumnSource | None:
        """The column of a field; None if it has none."""
        number = message.columns.get(row.name)
        return None if number is None else self.columns[number]


def _inlined(shown: View, items: tuple[Step, ...]) -> tuple[Step, ...]:
    """The same steps with those of the parts that are there once among them, under longer names."""
    found: list[Step] = []
    for step in items:
        if isinstance(step, Conditional | Tagged):
            found.append(replace(step, steps=_inlined(shown, step.steps)))
        elif isinstance(step, Single) and step.kind == "part" and step.part is not None:
            found += _inlined(shown, steps(shown, renamed(step.part.fields, f"{step.row.name}_{{}}_".format)))
        else:
            found.append(step)
    return tuple(found)


def _values(fields: tuple[Field, ...]) -> list[Field]:
    """The rows that are attributes in Python: no constants, no lengths, no counts."""
    return [row for row in fields if row.name not in _lengths(fields) and len(row.constants) != 1]


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
    """The variable that holds a field: nothing else in a kernel ends like that."""
    return f"{name}_"


def emit_columnar(versions: tuple[View, ...]) -> dict[str, str]:
    """Return the files of the sub-package by their paths within the package: the session, plans and kernels."""
    texts: dict[str, str] = {}
    kernels = [_Kernel(versions, now) for now in versions]
    for kernel in kernels:
        texts[f"columnar/kernel_v{kernel.version}.py"] = _render("columnar_kernel.py.j2", kernel, notice=NOTICE)
    texts["columnar/__init__.py"] = _render("columnar_init.py.j2", kernels[0], notice=NOTICE)
    texts["columnar/plans.py"] = _render("columnar_plans.py.j2", kernels[0], notice=NOTICE, kernels=kernels)
    return texts


def _render(template: str, kernel: _Kernel, **values: Any) -> str:
    environment = templates(_HERE / "templates")
    environment.globals.update(
        any_of=any_of,
        column_of=kernel.column,
        checks_of=checks_of,
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
    return f"{'int' if item.format.islower() else 'uint'}{8 * item.size}"


def _offsets_of(run: Run) -> list[int]:
    """Where each integer of a run lies in it."""
    return [sum(item.size for item in run.fields[:index]) for index in range(len(run.fields))]
