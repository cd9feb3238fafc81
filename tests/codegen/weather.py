"""The files of docs/how-to/another-protocol.md, the protocol of weather stations."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import ROOT

PAGE = (ROOT / "docs/how-to/another-protocol.md").read_text("utf-8")
FILES = dict(re.findall(r"^`([\w/.]+)`:\n\n(?:<!--.*?-->\n)?```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def write_files(folder: Path) -> None:
    """Write the page's files below a folder: `weather/`, and the module of its type."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
