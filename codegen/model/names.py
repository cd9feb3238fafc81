"""Python names for the documentation's names."""

from __future__ import annotations


def class_name(name: str) -> str:
    """Return the class of a message or part: Stream Start -> StreamStart."""
    return "".join(word[0].upper() + word[1:] for word in name.split())


def snake_case(name: str) -> str:
    """Return the module or variable of a class: StreamStart -> stream_start."""
    words: list[str] = []
    for index, character in enumerate(name):
        starts = character.isupper() and (
            index == 0 or name[index - 1].islower() or (index + 1 < len(name) and name[index + 1].islower())
        )
        if starts:
            words.append("")
        words[-1] += character.lower()
    return "_".join(words)
