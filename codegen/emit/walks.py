"""The native walks over batches: one C file for all versions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from codegen.emit.columns import MessageSource, PartSource, WalkSource
from codegen.emit.rendering import any_of, render
from codegen.emit.steps import Branch, Run, Step, checks_of
from codegen.lowering.operations import Bytes, Measure, Repeat, Text

_FUNCTION = re.compile(r"^//// (\w+)\n", re.MULTILINE)


def emit_walks(walks: list[WalkSource]) -> tuple[str, dict[int, str]]:
    """Return the text of the file, and the digest of each version's walk. Versions share functions of the same text."""
    names_by_function: dict[str, str] = {}
    functions: list[str] = []
    names_by_walk: list[tuple[WalkSource, dict[str, str]]] = []
    digests: dict[int, str] = {}
    for walk in walks:
        names: dict[str, str] = {}
        context = {"checks_of": _checks, "variables_of": _variables, "any_of": _any_of}
        text = render("native_functions.c.j2", walk=walk, **context)
        for name, source in zip(*[iter(_FUNCTION.split(text)[1:])] * 2, strict=True):
            # Its own <name> remains, so that the functions of two versions have the same text.
            function = source.strip()
            for called, full in names.items():
                function = function.replace(f"<{called}>", full)
            if function not in names_by_function:
                names_by_function[function] = f"{name}_{walk.version}"
                functions.append(function.replace(f"<{name}>", names_by_function[function]))
            names[name] = names_by_function[function]
        names_by_walk.append((walk, names))
        facts = [fact.name for fact in walk.protocol.session]
        numbers = [
            (message.message.tag, message.when, message.message.sets, message.message.clears)
            for message in walk.dispatch
        ]
        own = [repr(facts), repr(numbers), *map(str, walk.every), *text.splitlines()]
        digests[walk.version] = hashlib.sha256("\n".join(own).encode()).hexdigest()[:16]
    return render("native_walks.c.j2", walks=names_by_walk, functions=functions, digests=digests), digests


def _any_of(name: str, characters: str) -> str:
    return any_of(name, characters).replace(" or ", " || ").replace("False", "false")


def _checks(run: Run) -> list[str]:
    checks = checks_of(run, members=True)
    words = {" and ": " && ", " or ": " || ", "not ": "!", "len(data) - 1": "size_of_message"}
    for word, own in words.items():
        checks = [check.replace(word, own) for check in checks]
    return checks


def _variables(message: MessageSource | PartSource | None, steps: tuple[Step, ...]) -> str:
    initial = {"size_of_message": "end - at"}
    names = dict.fromkeys(_names(message is not None, steps))
    return "\n    ".join(
        f"{'int' if name == 'result' else 'int64_t'} {name} = {initial.get(name, 0)};" for name in names
    )


def _names(stores: bool, steps: tuple[Step, ...]) -> Iterator[str]:
    for step in steps:
        match step:
            case Run():
                for integer in step.integers:
                    if isinstance(integer, Measure) and not integer.of:
                        # Without the tag, as `at` is behind the tag at first.
                        yield "size_of_message"
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
