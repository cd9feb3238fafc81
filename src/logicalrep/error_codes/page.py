"""The page of all errors. To write it: `python -m logicalrep.error_codes.page docs/reference/errors.md`."""

from __future__ import annotations

import pathlib
import sys

from logicalrep.error_codes import CODES

_HEAD = """# Errors

Every error of logicalrep is a `LogicalRepError`. Its text begins with a stable code: `[SLOT_LOST] replication slot 'x'
is lost …`. In Spark, where often only the text arrives, look for the code. The attribute `code` has the code too. The
texts of `DecodeError` and `EncodeError` omit the code. A `PreflightError` has a line with its own code for each
finding.

| code | cause | remedy |
| --- | --- | --- |
"""


def page() -> str:
    return _HEAD + "".join(f"| `{code}` | {cause} | {remedy} |\n" for code, (cause, remedy) in sorted(CODES.items()))


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(page(), "utf-8")
