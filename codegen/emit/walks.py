"""The native walks over batches: one C file for all versions, of the same steps as the kernels in Python."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator

from codegen.emit.columns import Kernel, MessageSource, PartSource
from codegen.emit.rendering import any_of, render
from codegen.emit.steps import Branch, Run, Step, checks_of
from codegen.lowering.operations import Bytes, Measure, Repeat, Text
from codegen.model.layouts import Part

_FUNCTION = re.compile(r"^//// (\w+)\n", re.MULTILINE)


def emit_walks(kernels: list[Kernel]) -> tuple[str, dict[int, str]]:
    """Return the text of the file, and the digest of each version's walk. Versions share functions of the same text."""
    names_by_function: dict[str, str] = {}
    functions: list[str] = []
    names_by_kernel: list[tuple[Kernel, dict[str, str]]] = []
    digests: dict[int, str] = {}
    for kernel in kernels:
        names: dict[str, str] = {}
        context = {
            "checks_of": _checks,
            "variables_of": _variables,
            "any_of": _any_of,
            "function_of": _function_of(kernel),
        }
        text = render("native_functions.c.j2", kernel=kernel, **context)
        for name, source in zip(*[iter(_FUNCTION.split(text)[1:])] * 2, strict=True):
            function = source.strip()
            for called, full in names.items():
                function = re.sub(rf"\b{called}(?=\(walk, &|,)", full, function)
            if function not in names_by_function:
                names_by_function[function] = f"{name}_{kernel.version}"
                functions.append(
                    re.sub(rf"^(static \w+) {name}\(", rf"\1 {name}_{kernel.version}(", function, flags=re.MULTILINE)
                )
            names[name] = names_by_function[function]
        names_by_kernel.append((kernel, names))
        facts = [fact.name for fact in kernel.protocol.session]
        numbers = [
            (message.message.tag, message.when, message.message.sets, message.message.clears)
            for message in kernel.dispatch
        ]
        own = [repr(facts), repr(numbers), *map(str, kernel.every), *text.splitlines()]
        digests[kernel.version] = hashlib.sha256("\n".join(own).encode()).hexdigest()[:16]
    return render("native_walks.c.j2", kernels=names_by_kernel, functions=functions, digests=digests), digests


def _function_of(kernel: Kernel) -> Callable[[Part], str]:
    return lambda part: kernel.function_of(part).rstrip("_")


def _any_of(name: str, characters: str) -> str:
    return any_of(name, characters).replace(" or ", " || ").replace("False", "false")


def _checks(run: Run) -> list[str]:
    checks = checks_of(run, members=True)
    return [check.replace(" and ", " && ").replace(" or ", " || ").replace("not ", "!") for check in checks]


def _variables(message: MessageSource | PartSource | None, steps: tuple[Step, ...]) -> str:
    names = dict.fromkeys(_names(message is not None, steps))
    return "\n    ".join(f"{'int' if name == 'result' else 'int64_t'} {name} = 0;" for name in names)


def _names(stores: bool, steps: tuple[Step, ...]) -> Iterator[str]:
    for step in steps:
        match step:
            case Run():
                for integer in step.integers:
                    if stores or isinstance(integer, Measure) or checks_of(Run((integer,)), members=True):
                        yield integer.name
            case Branch():
                if step.tag is not None:
                    yield step.tag.name
                yield from _names(stores, step.steps)
            case Text():
                yield "size"
                if stores:
                    yield from (step.name, f"{step.name}_size")
            case Bytes() if stores:
                yield from (step.name, f"{step.name}_size")
            case Repeat():
                yield step.name
                if step.repeats == "choose":
                    yield from (f"{step.name}_size", "result")
