"""The types that a checker gives a decoder's messages. test_examples.py has it checked."""

from __future__ import annotations

from typing import assert_type

from logicalrep import Decoder, v1, v2, v3, v4


def newest(data: bytes) -> None:
    message = Decoder(4, parallel=True).decode(data)
    assert_type(message, v4.AnyMessage)
    if message.tag == "I":
        assert_type(message, v2.Insert)
    elif message.tag == "A":
        assert_type(message, v4.StreamAbort)


def oldest(data: bytes) -> None:
    # Servers send Stream Abort to clients of every version.
    message = Decoder(1).decode(data)
    assert_type(message, v1.AnyMessage | v2.StreamAbort)
    if message.tag == "A":
        assert_type(message, v2.StreamAbort)


def with_prepared_transactions(data: bytes, two_phase: bool) -> None:
    prepared = Decoder(1, two_phase=two_phase).decode(data)
    assert_type(
        prepared,
        v1.AnyMessage | v2.StreamAbort | v3.BeginPrepare | v3.Prepare | v3.CommitPrepared | v3.RollbackPrepared,
    )


def known_when_run(version: int, data: bytes) -> None:
    decoder: Decoder = Decoder(version)
    message = decoder.decode(data)
    if message.tag == "I":
        assert_type(message, v1.Insert | v2.Insert)


def given_on(decoder: Decoder[v4.AnyMessage]) -> Decoder:
    return decoder


given_on(Decoder(4))
Decoder("4")  # type: ignore[call-overload]
