"""Helpers shared by the generator's stages."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

ROOT = Path(__file__).parent.parent


def relative(path: Path) -> Path:
    """Return the path relative to the current folder, if it is below it."""
    try:
        return path.resolve().relative_to(Path.cwd())
    except ValueError:
        return path


def mask(bit: int) -> str:
    """Return a bit's mask: 0x02."""
    return f"0x{bit:02X}"


def lowered(text: str) -> str:
    """Return a sentence with a small first letter."""
    return text[:1].lower() + text[1:]


def out_of_order(old_order: Sequence[str], new_order: Sequence[str]) -> list[str]:
    """Return the fewest names that must have moved for one order to become the other."""
    runs: list[list[int]] = [[]]
    for name in new_order:
        place = old_order.index(name)
        runs.append([*max((run for run in runs if not run or run[-1] < place), key=len), place])
    in_place = {old_order[place] for place in max(runs, key=len)}
    return [name for name in new_order if name not in in_place]


def add_spec(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that reads a spec."""
    folder = relative(ROOT / "spec")
    parser.add_argument("--spec", type=lambda text: relative(Path(text)), default=folder, help="the folder of the YAML")
    add_project(parser)


def add_project(parser: argparse.ArgumentParser) -> None:
    """Add the option of every command that works with another project's protocol."""
    text = "the folder of another protocol, in place of the spec"
    parser.add_argument("--project", type=lambda text: relative(Path(text)), metavar="FOLDER", help=text)


def templates(folder: Path, **options: Any) -> Environment:
    """Return a folder's templates. An undefined name is an error."""
    loader = FileSystemLoader(folder)
    return Environment(loader=loader, undefined=StrictUndefined, keep_trailing_newline=True, **options)
