"""A type checker has nothing to say about the documents' examples, as strict as it gets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import ROOT, cells, examples

pytestmark = pytest.mark.slow

_OF_PACKAGES_TO_COME = {"changing-the-protocol.md", "another-protocol.md"}
"""The pages whose examples are for packages that they make on the way: tests/codegen runs them."""


def _programs() -> dict[str, str]:
    """The examples as programs: each example of README.md and library.md alone, and one program for all examples of a
    page in docs/, or for all cells of a notebook.
    """
    programs = {f"readme_{index}": example for index, example in enumerate(examples("README.md", "python"), 1)}
    programs |= {f"library_{index}": text for index, text in enumerate(examples("docs/how-to/library.md", "python"), 1)}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if page.name not in {"library.md", *_OF_PACKAGES_TO_COME} and (
            blocks := examples(str(page.relative_to(ROOT)), "python")
        ):
            programs[f"docs_{page.stem}"] = "\n".join(blocks)
    for notebook in (ROOT / "examples").glob("*.ipynb"):
        programs[f"notebook_{notebook.stem}"] = "\n".join(cells(f"examples/{notebook.name}"))
    return programs


def test_examples_have_no_findings(tmp_path: Path) -> None:
    programs = _programs() | {"typed_decoders": (Path(__file__).parent / "typed_decoders.py").read_text()}
    assert {"readme_1", "docs_spark", "docs_structs", "docs_types", "notebook_quick_start"} <= programs.keys()
    for name, text in programs.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", *(str(tmp_path / f"{name}.py") for name in programs)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
