"""Templates, and the small texts that they are filled with."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from codegen.lowering.rows import whether
from codegen.shared import mask, templates
from codegen.spec.model import Protocol, SessionFact
from codegen.spec.names import class_name

MARK = "by `python -m codegen regen`; do not edit."
"""Every file of the generator has it, but for those without any text; it removes no others."""
NOTICE = f"Generated from the spec {MARK}"


def render(template: str, **names: Any) -> str:
    """Return a file of the package."""
    return _TEMPLATES.get_template(template).render(**names)


def docstring(*paragraphs: str) -> str:
    """The text of a docstring: paragraphs, wrapped, the empty ones left out."""
    return "\n\n".join(textwrap.fill(text.strip(), 110) for text in paragraphs if text.strip())


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


def hexadecimal(character: str) -> str:
    """A character's byte as the code shows it."""
    return f"0x{ord(character):02X}"


def any_of(name: str, characters: Iterable[str]) -> str:
    """Return whether a variable is one of some characters."""
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
