"""The README's picture of Begin is drawn from the spec, the generated class, and a recorded message."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from website.derivation import PICTURE, picture, protocol


def test_the_picture_is_current() -> None:
    assert PICTURE.read_text("utf-8") == picture(protocol()), "run `python -m website.derivation`"


def test_each_field_has_its_four_forms() -> None:
    texts = [element.text for element in ElementTree.fromstring(picture(protocol())).iter() if element.text]
    for form in ("Int64 (XLogRecPtr)", "- final_lsn: Int64 (XLogRecPtr)", "final_lsn: Lsn", "00 00 00 00 05 19 22 b8"):
        assert form in texts
    assert "0/51922B8" in texts


def test_a_changed_spec_is_refused() -> None:
    spec = protocol()
    messages = [replace(message, fields=message.fields[:-1]) for message in spec.messages if message.name == "Begin"]
    with pytest.raises(ValueError, match="are not the rows"):
        picture(replace(spec, messages=tuple(messages)))
