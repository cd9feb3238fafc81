"""The command line before any command: help, the version, and options that are written nearly right."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from logicalrep.cli.main import main
from logicalrep.pipeline.config.options import OPTIONS, flag_of


def test_no_command_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    output = capsys.readouterr().err
    assert "replicate the tables of a database to Delta or Iceberg tables" in output
    assert "error" not in output


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"logicalrep {version('logicalrep')}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["replicate", "--table", "x"], "logicalrep replicate: error: unrecognized arguments: --table x; did you mean --tables?"),
        (["check", "--exclude-table=x"], "; did you mean --exclude-tables?"),
        (["status", "--frobnicate"], "unrecognized arguments: --frobnicate\n"),
    ],
)  # fmt: skip
def test_an_option_that_is_written_nearly_right(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--dsn", "dbname=x", "--to", "x"])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["verify"], ["status"], ["resync", "t"], ["pause"], ["resume"], ["skip", "t", "0/1"], ["drop"]]
)
def test_an_option_of_replicate_that_a_command_reads_from_the_destination(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command[0], "--help"])
    own = capsys.readouterr().out
    flags = [flag for flag in map(flag_of, OPTIONS) if f"{flag} " not in own]
    assert "--format" in flags
    for flag in flags:
        with pytest.raises(SystemExit) as ended:
            main([*command, "--dsn", "dbname=x", "--to", "x", f"{flag}=x"])
        assert ended.value.code == 2
        hint = f"; omit {flag}, an option of replicate: {command[0]} reads the format and all settings from the"
        assert hint in capsys.readouterr().err


def test_an_option_of_replicates_output(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["check", "--dsn", "dbname=x", "--to", "x", "--quiet"])
    assert capsys.readouterr().err.endswith("; omit --quiet, an option of replicate\n")
