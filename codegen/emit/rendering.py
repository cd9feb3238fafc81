"""Templates and their filters."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from codegen.lowering.rows import whether
from codegen.model.model import Protocol, SessionFact
from codegen.model.names import class_name
from codegen.shared import mask, templates

MARK = "by `python -m codegen regen`; do not edit."
"""A mark in every generated file that is not empty. The generator removes only files with the mark."""
NOTICE = f"Generated from the spec {MARK}"


def render(template: str, **names: Any) -> str:
    """Return a rendered template."""
    return _TEMPLATES.get_template(template).render(**names)


def docstring(*paragraphs: str) -> str:
    """Return the text of a docstring: non-empty paragraphs, wrapped."""
    return "\n\n".join(textwrap.fill(text.strip(), 110) for text in paragraphs if text.strip())


def fact_docstring(protocol: Protocol, fact: SessionFact) -> str:
    """Return the docstring of a session fact's attribute, in a decoder or a columnar session."""
    if fact in protocol.tracked_facts:
        return docstring(f"For the next message: {whether(fact)}.")
    return docstring(f"W{whether(fact)[1:]}.")


def joined(names: Iterable[str]) -> str:
    """Return names as `a, b and c`."""
    *rest, last = [*names] or [""]
    return f"{', '.join(rest)} and {last}" if rest else last


def quoted(text: str) -> str:
    """Return a docstring with quotes, for column 0."""
    text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if text.endswith('"'):
        text = f'{text[:-1]}\\"'
    return f'"""{text}\n"""' if "\n" in text else f'"""{text}"""'


def hexadecimal(character: str) -> str:
    """Return a character's byte as a literal."""
    return f"0x{ord(character):02X}"


def any_of(name: str, characters: Iterable[str]) -> str:
    """Return the condition that a variable is one of the characters."""
    return " or ".join(f"{name} == {hexadecimal(character)}" for character in characters) or "False"


_TEMPLATES = templates(Path(__file__).parent / "templates")
_TEMPLATES.filters["character"] = chr
_TEMPLATES.globals.update(
    any_of=any_of,
    class_name=class_name,
    docstring=docstring,
    fact_docstring=fact_docstring,
    hexadecimal=hexadecimal,
    mask=mask,
    notice=NOTICE,
    quoted=quoted,
)
