"""The command that measures writes its figures, and whether their aims hold, into their page."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.pages import parts_of, write_part
from bench.tables.aims import AIMS
from bench.tables.figures import PAGE, part_text

FIGURES = [
    {"measured": "a run with nothing to do", "seconds": 1.2, "CPU-seconds": 0.6},
    {"measured": "an idle process", "most memory, MiB": {"driver": 1116, "in all": 1116}},
    {"measured": "a load", "most memory, MiB": {"driver": 20, "Java": 30, "in all": 50}},
]


def test_a_part_has_its_figures_and_whether_the_aims_hold() -> None:
    assert part_text("first", FIGURES).splitlines() == [
        "| measured | seconds | CPU-seconds | most memory, MiB |",
        "| --- | --- | --- | --- |",
        "| a run with nothing to do | 1.2 | 0.6 |  |",
        "| an idle process |  |  | 1,116 |",
        "| a load |  |  | 50 of which driver 20, Java 30 |",
        "",
        "| aim | at most | measured | outcome |",
        "| --- | --- | --- | --- |",
        "| a run with nothing to do: seconds | 1.0 | 1.2 | missed by 20% |",
        "| a run with nothing to do: CPU-seconds | 0.8 | 0.6 | holds |",
        "| an idle process: most memory, MiB | 150 | 1,116 | missed by 644% |",
    ]


def test_a_figure_without_the_value_of_an_aim_is_not_measured() -> None:
    assert part_text("first", [{"measured": "nothing to do", "CPU-seconds": 0.8}]).splitlines()[-2:] == [
        "| nothing to do: seconds | 1.0 |  | not measured |",
        "| nothing to do: CPU-seconds | 0.8 | 0.8 | holds |",
    ]


def test_a_part_without_aims_has_one_table() -> None:
    assert part_text("formats", FIGURES[:1]).splitlines()[2:] == ["| a run with nothing to do | 1.2 | 0.6 |"]


def test_the_page_has_a_place_for_every_part_with_an_aim() -> None:
    assert set(parts_of(PAGE)) == {aim.part for aim in AIMS}


def test_only_the_measured_part_of_a_page_is_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- measured: a -->\n<!-- end -->\nText.\n<!-- measured: b -->\n\nold\n\n<!-- end -->\n")
    write_part(page, "b", r"new \1")
    write_part(page, "b", r"newer \1")
    assert page.read_text() == (
        "<!-- measured: a -->\n<!-- end -->\nText.\n<!-- measured: b -->\n\nnewer \\1\n\n<!-- end -->\n"
    )
    with pytest.raises(ValueError, match="0 places for the part c"):
        write_part(page, "c", "text")
