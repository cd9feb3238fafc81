"""The Python codecs of PostgreSQL's character sets."""

from __future__ import annotations

import codecs

import pytest

from logicalrep.values import encodings
from logicalrep.values.encodings import python_codec


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("UTF8", "utf-8"),
        ("utf-8", "utf-8"),
        ("UNICODE", "utf-8"),
        ("LATIN1", "iso8859-1"),
        ("LATIN9", "iso8859-15"),
        ("EUC_JP", "euc_jp"),
        ("WIN1252", "cp1252"),
        ("KOI8-R", "koi8-r"),
        ("SQL_ASCII", "ascii"),
    ],
)
def test_names_are_read_as_the_server_reads_them(name: str, codec: str) -> None:
    assert codecs.lookup(python_codec(name)) == codecs.lookup(codec)


def test_every_codec_exists_and_is_for_text() -> None:
    for codec in encodings.CODECS.values():
        assert "A".encode(codec).decode(codec) == "A"


@pytest.mark.parametrize("name", ["MULE_INTERNAL", "EUC_TW", "", "EBCDIC"])
def test_a_name_without_a_codec_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="has no Python codec; use UTF8 for the session"):
        python_codec(name)
