"""The examples of the documents, so that tests run and check them as they stand there."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

DSN = "host=localhost dbname=shop user=postgres"
"""The server of the examples."""


def examples(document: str, language: str = r"\w*") -> list[str]:
    """The blocks of code of a document."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)


def example(document: str, having: str) -> str:
    """The one block in a document that has some text."""
    (block,) = [block for block in examples(document) if having in block]
    return block


def cells(notebook: str) -> list[str]:
    """The cells of code of a notebook."""
    notebook_cells = json.loads((ROOT / notebook).read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in notebook_cells if cell["cell_type"] == "code"]


def check_results(block: str, names: dict[str, Any]) -> int:
    """Run a block, and compare what expressions give with the comments behind them; how many these are.

    A result is as Python prints it, or the name of an error.
    """
    count = 0
    for statement in ast.parse(block).body:
        code = ast.get_source_segment(block, statement)
        assert code is not None
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), "<example>", "exec", dont_inherit=True), names)
            continue
        result = block.splitlines()[(statement.end_lineno or 0) - 1].partition("  # ")[2]
        try:
            printed = repr(eval(code, names))
        except Exception as error:
            printed = type(error).__name__
        assert printed == result, code
        count += 1
    return count
