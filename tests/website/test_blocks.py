"""Each block of code in a page runs in a test that a comment above it names, or the comment says why it does not run.

A comment, `<!-- test: PATH -->` or `<!-- not run: REASON -->`, holds for the blocks below it, up to the next comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.documents import ROOT
from website.pages import PAGES

_COMMENT_OR_BLOCK = re.compile(r"^<!-- (test|not run): ([^\n]+) -->$|^```.*?^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block of code, and the comment that holds for it."""

    line: str
    kind: str | None
    """`test` or `not run`; None without a comment."""
    text: str
    """The path of the test, or the reason."""


def _blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page's text."""
    kind, text = None, ""
    for match in _COMMENT_OR_BLOCK.finditer(page):
        if match[1]:
            kind, text = match[1], match[2]
        else:
            yield Block(match[0].splitlines()[1], kind, text)


BLOCKS = {page.source: list(_blocks((ROOT / page.source).read_text("utf-8"))) for page in PAGES}


def test_each_block_has_a_comment() -> None:
    lacking = [f"{page}: {block.line}" for page, blocks in BLOCKS.items() for block in blocks if block.kind is None]
    assert lacking == [], "run them in a test, by tests/documents.py, and name it in a comment above the block"


TESTED = sorted({(page, block.text) for page, blocks in BLOCKS.items() for block in blocks if block.kind == "test"})


@pytest.mark.parametrize(("page", "test"), TESTED)
def test_the_named_test_reads_the_page(page: str, test: str) -> None:
    name = page.removeprefix("docs/how-to/").removesuffix(".md")
    assert name in (ROOT / test).read_text("utf-8"), f"{test} does not read {page}"


def test_a_block_without_a_comment_is_found() -> None:
    page = "```sh\nfirst\n```\n\n<!-- test: a.py -->\n```sh\nsecond\n```\n<!-- not run: why -->\n```\nthird\n```\n"
    assert list(_blocks(page)) == [
        Block("first", None, ""), Block("second", "test", "a.py"), Block("third", "not run", "why")
    ]  # fmt: skip
