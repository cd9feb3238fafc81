"""Each block of code in a page runs in a test that the comment above it names, or the comment says why it does not run.

The comment, `<!-- test: PATH -->` or `<!-- not run: REASON -->`, is for this block alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.documents import ROOT
from website.pages import PAGES

_BLOCK = re.compile(r"(?:^<!-- (test|not run): ([^\n]+) -->\n+)?^```[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block of code, and the comment above it."""

    line: str
    kind: str | None
    """`test` or `not run`; None without a comment."""
    text: str
    """The path of the test, or the reason."""


def _blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page's text."""
    for kind, text, code in _BLOCK.findall(page):
        yield Block(code.partition("\n")[0], kind or None, text)


BLOCKS = {page.source: list(_blocks((ROOT / page.source).read_text("utf-8"))) for page in PAGES}


def test_each_block_has_a_comment_of_its_own() -> None:
    lacking = [f"{page}: {block.line}" for page, blocks in BLOCKS.items() for block in blocks if block.kind is None]
    assert lacking == [], "run them in a test, by tests/documents.py, and name it in a comment right above the block"


TESTED = sorted({(page, block.text) for page, blocks in BLOCKS.items() for block in blocks if block.kind == "test"})


@pytest.mark.parametrize(("page", "test"), TESTED)
def test_the_test_in_the_comment_reads_the_page(page: str, test: str) -> None:
    name = page.removeprefix("docs/how-to/").removesuffix(".md")
    assert name in (ROOT / test).read_text("utf-8"), f"{test} does not read {page}"


def test_a_block_without_a_comment_of_its_own_is_reported() -> None:
    page = "<!-- test: a.py -->\n```sh\nfirst\n```\n\nText.\n\n```sh\nsecond\n```\n<!-- not run: why -->\n\n```\nthird\n```\n"
    assert list(_blocks(page)) == [
        Block("first", "test", "a.py"), Block("second", None, ""), Block("third", "not run", "why")
    ]  # fmt: skip
