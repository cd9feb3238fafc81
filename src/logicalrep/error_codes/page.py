"""The page of all errors: `python -m logicalrep.error_codes.page docs/reference/errors.md` writes it."""

from __future__ import annotations

import pathlib
import sys

from logicalrep.error_codes import CODES

_HEAD = """# Errors

Every error of logicalrep is a `LogicalRepError`. Its text begins with its code, which is stable: `[SLOT_LOST]
replication slot 'x' is lost …`. In Spark, where often only the text arrives, look for the code. The attribute `code`
has it too; the texts of `DecodeError` and `EncodeError` omit it. A `PreflightError` has a line for each finding, each
with its own code.

| code | cause | remedy |
| --- | --- | --- |
"""


def page() -> str:
    """Return the page of all codes as Markdown."""
    return _HEAD + "".join(f"| `{code}` | {happened} | {do} |\n" for code, (happened, do) in sorted(CODES.items()))


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(page(), "utf-8")
