"""The names of an error's fields are those of the documentation's page, in its order."""

from __future__ import annotations

import html
import re

import pytest

from tests.codegen.pagecheck.pages import PAGES, PGWIRE

PAGE = PAGES / "postgresql-18-error-fields.html"


@pytest.mark.skipif(not PAGE.exists(), reason="the page is not at hand")
def test_the_fields_of_errors_are_those_of_the_page() -> None:
    entries = re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", PAGE.read_text("utf-8"), re.DOTALL)
    printed = [
        tuple(html.unescape(re.sub(r"<[^>]+>|\s+", " ", text)).split(":")[0].strip() for text in entry)
        for entry in entries
    ]
    (row,) = [row for row in PGWIRE.part("ErrorField").fields if row.values]
    named = [(letter, name.replace("_", " ").capitalize()) for letter, name in row.values.items()]
    # Two fields have one name on the page: the second is the severity in English.
    assert [(letter, "Severity" if letter == "V" else name) for letter, name in named] == printed
