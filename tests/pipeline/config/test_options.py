"""The options of `replicate`: one table of them for Python, the command line, files of settings and their page."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import logicalrep
from logicalrep.cli.main import main
from logicalrep.options.kinds import OptionError
from logicalrep.pipeline.config.nodes import ConfigError
from logicalrep.pipeline.config.options import OPTIONS, TABLE_OPTIONS, flag_of, page
from logicalrep.pipeline.config.reading import read_config
from logicalrep.pipeline.config.settings import ReplicateSettings
from logicalrep.pipeline.schema.table_settings import TableSettings
from tests.conftest import ROOT


def test_the_page_is_the_table() -> None:
    assert (ROOT / "docs/reference/replicate-options.md").read_text("utf-8") == page(), (
        "run `make docs/reference/replicate-options.md`"
    )


def test_each_option_is_an_argument_of_python_and_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = inspect.signature(logicalrep.replicate).parameters
    assert list(arguments)[:2] == ["dsn", "to"]
    assert arguments.keys() - OPTIONS.keys() == {
        "dsn",
        "to",
        "storage_options",
        "catalog",
        "catalog_options",
        "observer",
        "stop",
    }
    assert {argument.kind for argument in list(arguments.values())[2:]} == {inspect.Parameter.KEYWORD_ONLY}
    with pytest.raises(SystemExit):
        main(["replicate", "--help"])
    shown = capsys.readouterr().out
    # The page has every option of the command.
    assert {*re.findall(r"--[a-z-]+", shown)} - {"--help"} <= {*re.findall(r"--[a-z-]+", page())}
    documentation = inspect.getdoc(logicalrep.replicate) or ""
    for name in arguments.keys() - {"dsn", "to", "storage_options", "catalog_options", "observer", "stop"}:
        assert f"  {flag_of(name)} " in shown, name
        assert f"\n    {name}: " in documentation, name
    assert "\nRaises:\n" in documentation


WRONG: dict[str, list[Any]] = {
    "failover": ["yes", 1],
    "tables": ["a.b.c", ["public.a", "A"]],
    "exclude_tables": ["a.b.c", ["A"]],
    "once": [2],
    "shared_folder": [2],
    "retry_timeout": [-1, float("nan"), "soon"],
    "join_after": [-1.0, float("inf"), True],
    "on_lost_slot": ["never", 3],
    "every": [-1.0, float("inf"), True],
    "keep": ["a day"],
    "unrepresentable": ["nul"],
    "numeric": ["float", "decimal(39,2)", "decimal(4,5)"],
    "deletes": ["sotf", ["hard", "soft"]],
    "history": ["on"],
    "append": [0],
    "write_mode": ["copy"],
    "change_data_feed": [0],
    "origin": ["all"],
    "format": ["hudi"],
    "format_version": [1, 4, "2.5", "three"],
    "engine": ["cluster"],
    "upkeep": ["some"],
    "load_sessions": [0, 1.5, -1, "many"],
    "load_rate": [-0.1],
    "index_size": [-1.0, "much"],
    "memory": [79.9, -1, "2GB"],
    "listen": ["host:port", 99999],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_wrong_value_is_the_same_error_in_python_and_on_the_command_line(
    name: str, value: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(OptionError) as raised:
        logicalrep.replicate("dbname=x", str(tmp_path / "lake"), **{name: value})
    assert str(raised.value).startswith(f"[OPTION_INVALID] option {name!r}")
    if isinstance(value, str) and name not in ("failover", "history"):
        line = ["replicate", "--dsn", "dbname=x", "--to", str(tmp_path / "lake"), flag_of(name), value]
        assert main(line) == 2
        assert capsys.readouterr().err == f"error: {raised.value}\n"
    if isinstance(value, str) and name in TABLE_OPTIONS:
        with pytest.raises(ConfigError, match=f"config: '{name}' of t "):
            read_config({"tables": {"t": {name: value}}}, TableSettings())
    assert not (tmp_path / "lake").exists()


def test_a_text_has_the_same_tables_as_a_list() -> None:
    for name in ("tables", "exclude_tables"):
        for given in ("a.b,c.d", ["a.b", "c.d"], ["a.b,c.d"]):
            assert getattr(ReplicateSettings("", "x", **{name: given}), name) == ("a.b", "c.d")


def test_a_table_is_not_both_wanted_and_excluded() -> None:
    with pytest.raises(OptionError, match=r"both name public\.b: remove it from one"):
        ReplicateSettings("", "x", tables="a,b", exclude_tables=["public.b", "c"])


def test_only_a_catalog_takes_over_the_upkeep() -> None:
    named: dict[str, Any] = {"format": "iceberg", "upkeep": "none"}
    with pytest.raises(OptionError, match="'upkeep' is none"):
        ReplicateSettings("", "x", **named)
    settings = ReplicateSettings("", "x", catalog="https://catalog.example.org", **named)
    for named_upkeep, does_upkeep in (("none", False), ("all", True)):
        catalog = replace(settings, upkeep=named_upkeep, memory=100).table_catalog
        assert catalog is not None
        assert catalog.does_upkeep is does_upkeep


def test_only_iceberg_tables_have_a_version() -> None:
    with pytest.raises(OptionError, match="format_version is 3, which is for Iceberg tables"):
        ReplicateSettings("", "x", format_version=3)
    assert ReplicateSettings("", "x", format="iceberg", format_version=3).table_settings.has_row_lineage


def test_every_kind_of_option_has_wrong_values_above() -> None:
    assert OPTIONS.keys() - WRONG.keys() == {
        "publication", "slot", "config", "call_on_stop", "call_on_schema_change", "lineage"
    }  # fmt: skip


def test_options_that_are_left_out_or_none_have_their_defaults() -> None:
    left_out, none = ReplicateSettings("", "x"), ReplicateSettings("", "x", **dict.fromkeys(OPTIONS))
    assert [getattr(left_out, name) for name in OPTIONS] == [getattr(none, name) for name in OPTIONS]
    assert (left_out.every, left_out.keep, left_out.load_sessions, left_out.load_bytes) == (10, 24, 4, None)


def test_values_of_python_and_texts_of_the_command_line_are_the_same_settings() -> None:
    values = ReplicateSettings(
        "", "x", tables=["a", 'shop."B",c'], once=True, every=0, load_rate=2.5, load_sessions=8, deletes="soft"
    )
    texts: dict[str, Any] = {"once": "true", "every": "0", "load_rate": "2.5", "load_sessions": "8", "deletes": "soft"}
    given = ReplicateSettings("", "x", tables='a,shop."B",c', **texts)
    assert [getattr(values, name) for name in OPTIONS] == [getattr(given, name) for name in OPTIONS]
    assert values.tables == ("public.a", 'shop."B"', "public.c")
    assert (values.load_bytes, values.table_settings.deletes) == (2_500_000, "soft")


def test_secrets_are_not_in_the_text_of_settings() -> None:
    settings = ReplicateSettings("password=s3cret", "x", storage_options={"key": "s3cret"})
    assert "s3cret" not in repr(settings)
