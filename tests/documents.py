"""The examples of the documents, so that tests run them as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

DSN = "host=localhost dbname=shop user=postgres"
"""The server of the examples."""


def example(document: str, having: str) -> str:
    """The one block in a document that has some text."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)
    (block,) = [block for block in blocks if having in block]
    return block
