"""An encoding that Python does not know is refused where it is given."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logicalrep import Decoder, v1
from logicalrep.values import Column, column_type
from logicalrep_protocol.columnar import Session
from logicalrep_runtime.errors import EncodingError

ORIGIN = v1.Origin(origin_lsn=1, name="a")


@pytest.mark.parametrize(
    "give",
    [
        lambda encoding: Decoder(1, encoding=encoding),
        lambda encoding: Session(version=1, encoding=encoding),
        lambda encoding: Column("a", column_type(25), encoding=encoding),
        lambda encoding: ORIGIN.build(encoding=encoding),
        lambda encoding: v1.parse(ORIGIN.build(), encoding=encoding),
    ],
    ids=["Decoder", "Session", "Column", "build", "parse"],
)
@pytest.mark.parametrize("encoding", ["nonsense", "hex", "undefined", "", "a\0b"])
def test_an_encoding_that_is_none_is_refused(give: Callable[[str], object], encoding: str) -> None:
    with pytest.raises(EncodingError) as raised:
        give(encoding)
    assert str(raised.value) == (
        f"[ENCODING_UNKNOWN] encoding {encoding!r} is not a text codec of Python: "
        "pass the codec of the session's client_encoding"
    )


def test_any_spelling_is_taken() -> None:
    for encoding in ("latin-1", "ISO8859-1", "iso-8859-1"):
        assert v1.parse(ORIGIN.build(encoding=encoding), encoding=encoding) == ORIGIN
        assert Decoder(1, encoding=encoding).encoding == encoding
