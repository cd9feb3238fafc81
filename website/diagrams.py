"""The pictures of diagrams: `python -m website.diagrams`. It needs npm, and a Chromium on PATH."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from codegen.shared import ROOT
from website.pages import diagrams

FOLDER = ROOT / "website/pictures"
_DRAWER = "@mermaid-js/mermaid-cli@11.17.0"


def mark(text: str) -> str:
    """Return the line of a picture that says from which diagram it was made."""
    return f"<!-- {hashlib.sha256(text.encode()).hexdigest()} -->"


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    settings = {"executablePath": chromium, "args": ["--no-sandbox", "--disable-background-networking"]}
    drawing = {"htmlLabels": False, "flowchart": {"htmlLabels": False}, "fontFamily": "system-ui, sans-serif"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "browser.json").write_text(json.dumps(settings))
        (folder / "drawing.json").write_text(json.dumps(drawing))
        for picture, text in diagrams().items():
            (folder / "diagram.mmd").write_text(text)
            command = ["npx", "--yes", "-p", _DRAWER, "mmdc", "--quiet", "-p", "browser.json", "-c", "drawing.json"]
            command += ["-i", "diagram.mmd", "-o", "diagram.svg", "-t", "neutral", "-b", "transparent"]
            subprocess.run(command, cwd=folder, env=os.environ | {"PUPPETEER_SKIP_DOWNLOAD": "1"}, check=True)
            drawn = (folder / "diagram.svg").read_text("utf-8")
            (FOLDER / f"{picture}.svg").write_text(f"{mark(text)}\n{drawn}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
