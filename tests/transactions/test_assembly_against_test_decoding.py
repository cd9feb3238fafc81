"""Assembled transactions equal an independent plugin's account of the same log, and the tables' final rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.protocol.captured import collected, selected
from tests.transactions.captured import header, name
from tests.transactions.replay import check_final_tables, is_complete
from tests.transactions.truth import check_committed, check_prepared

pytestmark = pytest.mark.slow


def has_committed_truth(path: Path) -> bool:
    return (path.parent / "truth.test_decoding.jsonl.gz").exists()


def has_prepared_truth(path: Path) -> bool:
    """Return whether a prepared transaction can be compared: before 15 pgoutput ignores the slot's two_phase."""
    facts = header(path)
    return (
        (path.parent / "truth.test_decoding_two_phase.jsonl.gz").exists()
        and facts["slot_two_phase"]
        and facts["server_version_num"] >= 150000
    )


@pytest.mark.parametrize("path", [path for path in selected() if has_committed_truth(path)], ids=name)
def test_the_committed_transactions_are_those_of_test_decoding(path: Path) -> None:
    check_committed(path)


@pytest.mark.parametrize("path", [path for path in selected() if has_prepared_truth(path)], ids=name)
def test_prepared_transactions_and_their_decisions_are_those_of_test_decoding(path: Path) -> None:
    check_prepared(path)


@pytest.mark.parametrize("path", [path for path in selected() if is_complete(path)], ids=name)
def test_replaying_gives_the_final_tables(path: Path) -> None:
    check_final_tables(path)


def test_the_selection_has_all_of_it() -> None:
    assert sum(map(has_committed_truth, selected())) > 30
    assert any(map(has_prepared_truth, selected()))
    assert any(map(is_complete, selected()))


def over(paths: Iterable[Path], check: Callable[[Path], object]) -> list[object]:
    """Check all captures; a failure names the capture."""
    results = []
    for path in paths:
        try:
            results.append(check(path))
        except BaseException as error:
            error.add_note(f"in {path}")
            raise
    return results


@pytest.mark.thorough
def test_every_capture_has_the_transactions_of_test_decoding() -> None:
    assert len(over(collected(), check_committed)) > 500


@pytest.mark.thorough
def test_every_two_phase_slot_has_the_prepared_transactions_of_test_decoding() -> None:
    assert over(filter(has_prepared_truth, collected()), check_prepared)


@pytest.mark.thorough
def test_replaying_any_complete_capture_gives_the_final_tables() -> None:
    compared = over(filter(is_complete, collected()), check_final_tables)
    assert sum(compared) > 2000  # type: ignore[arg-type]
