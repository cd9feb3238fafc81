"""Readers that the server takes for synchronous standbys."""

from __future__ import annotations

import pytest

from logicalrep.postgres.preflight.synchronous import StandbyNames, State

SETTINGS: dict[str, tuple[State, str]] = {
    "": ("async", ""),
    "s1, s2": ("async", 'FIRST 1 ("s1", "s2")'),
    "*": ("sync", 'FIRST 1 ("real")'),
    "LogicalRep": ("sync", ""),
    "s1, logicalrep": ("potential", 'FIRST 1 ("s1")'),
    '"a ""b""", *': ("potential", 'FIRST 1 ("a ""b""", "real")'),
    "2 (s1, logicalrep, s2)": ("sync", 'FIRST 2 ("s1", "s2")'),
    "FIRST 1 (s1, *)": ("potential", 'FIRST 1 ("s1", "real")'),
    "first 3(*)": ("sync", 'FIRST 1 ("real")'),
    "ANY 1 (s1, logicalrep)": ("quorum", 'ANY 1 ("s1")'),
    'any 2 ("*")': ("quorum", 'ANY 1 ("real")'),
    "ANY 1 (real, *)": ("quorum", 'ANY 1 ("real")'),
}


@pytest.mark.parametrize(("setting", "expected"), SETTINGS.items())
def test_which_state_a_setting_gives_to_a_reader(setting: str, expected: tuple[State, str]) -> None:
    names = StandbyNames.parse(setting)
    assert (names.state("logicalrep"), names.without("logicalrep", ("real",))) == expected
