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
    storage, names = Storage(str(tmp_path)), Storage.names

    def list_before_the_first_state(self: Storage, folder: str, after: str) -> list[str]:
        old_names = names(self, folder, after)
        monkeypatch.undo()
        States(Storage(str(tmp_path))).write(State(lsn=Lsn(7)))
        return old_names

    monkeypatch.setattr(Storage, "names", list_before_the_first_state)
    assert State.read(storage).lsn == Lsn(7)
