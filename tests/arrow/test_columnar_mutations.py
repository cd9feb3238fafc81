"""Damaged messages: a batch refuses those that `parse` refuses."""

from __future__ import annotations

import pytest

from tests.arrow.expected import check
from tests.arrow.mutations import mutated_batches


@pytest.mark.slow
def test_damaged_messages() -> None:
    for session, messages in mutated_batches(3_000, 60):
        check(messages, session)


@pytest.mark.thorough
def test_a_hundred_thousand_damaged_messages() -> None:
    for session, messages in mutated_batches(100_000, 250):
        check(messages, session)
