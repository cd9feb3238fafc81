"""A reader of a destination whose first state is written at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest

from logicalrep.pipeline.state.state import State, States
from logicalrep.pipeline.storage.storage import Storage
from logicalrep_runtime.scalars import Lsn


def test_a_first_state_that_is_written_after_the_listing_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, list_files = Storage(str(tmp_path)), Storage.list

    def list_before_the_first_state(self: Storage, folder: str) -> list[str]:
        paths = list_files(self, folder)
        monkeypatch.undo()
        States(Storage(str(tmp_path))).write(State(lsn=Lsn(7)))
        return paths

    monkeypatch.setattr(Storage, "list", list_before_the_first_state)
    assert State.read(storage).lsn == Lsn(7)
