"""The pages in Markdown."""

from __future__ import annotations

from tests.conftest import ROOT

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "spec/**/*.md",
        "native/*.md",
        "codegen/*.md",
        "examples/*.md",
        "src/**/*.md",
        "tests/**/*.md",
    )
    for path in ROOT.glob(pattern)
)
