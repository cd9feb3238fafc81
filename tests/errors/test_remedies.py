"""The commands, options and extras that remedies name exist, in the pages and in the texts of errors."""

from __future__ import annotations

import ast
import functools
import io
import re
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress

import pytest

from logicalrep.cli.main import argument_parser
from logicalrep.error_codes import CODES
from tests.conftest import ROOT

_COMMAND = re.compile(r"run logicalrep ([a-z]+)((?: --[a-z-]+)*)")


@functools.cache
def _options() -> dict[str, set[str]]:
    """Return the options of each command, as its help lists them."""
    commands = re.findall(r"^ {2,4}([a-z]+)(?: |$)", _help(), re.MULTILINE)
    return {command: set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", _help(command))) for command in commands}


def _help(*command: str) -> str:
    with redirect_stdout(io.StringIO()) as output, suppress(SystemExit):
        argument_parser().parse_args([*command, "--help"])
    return output.getvalue()


def _parse(words: list[str]) -> None:
    try:
        argument_parser().parse_args(words)
    except SystemExit:
        pytest.fail(f"logicalrep {' '.join(words)}")


@pytest.mark.parametrize("code", CODES)
def test_a_remedy_names_existing_commands_options_and_extras(code: str) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    options = set().union(*_options().values())
    for text in (term for part in CODES[code] for term in re.findall("`([^`]+)`", part)):
        if text.startswith("logicalrep "):
            _parse(text.split()[1:])
        elif text.startswith("-"):
            assert text.split()[0] in options
        elif extra := re.fullmatch(r"pip install 'logicalrep\[(.+)\]'", text):
            assert set(extra[1].split(",")) <= extras.keys()
        else:
            assert not text.startswith("pip"), text


def _texts() -> Iterator[str]:
    """Yield the texts of the package's source, with the parts of an f-string joined."""
    for path in sorted((ROOT / "src/logicalrep").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_the_texts_of_errors_name_existing_commands_and_options() -> None:
    commands = {match.groups() for text in _texts() for match in _COMMAND.finditer(text)}
    assert len(commands) > 3
    for command, options in commands:
        assert set(options.split()) <= _options()[command], (command, options)
