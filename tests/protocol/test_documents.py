"""The examples of docs/how-to/structs.md give what the page says."""

from __future__ import annotations

from typing import Any

from tests.documents import check_results, examples


def test_the_examples_of_the_page_are_true() -> None:
    names: dict[str, Any] = {"__name__": "example"}
    assert sum(check_results(block, names) for block in examples("docs/how-to/structs.md", "python")) == 20
