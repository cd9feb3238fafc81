"""Several databases of one file: a process for each, and the other processes continue when one ends or hangs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from logicalrep.cli.databases import answers
from logicalrep.cli.main import main
from tests.cli.databases.several import COMMAND, NAMES, are_equal, following, write_file
from tests.conftest import ROOT
from tests.observe.scraping import got
from tests.pipeline.comparison import find_differences
from tests.pipeline.figures import get_status
from tests.pipeline.replicating import replicate_once
from tests.postgres.servers import Database
from tests.waiting import eventually


def of_database(parent: subprocess.Popen[str], name: str) -> int | None:
    """Return the process of a database; None without a process."""
    listing = subprocess.run(["ps", "-wweo", "pid,ppid,stat,args"], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines()[1:]:
        pid, ppid, state, arguments = line.split(None, 3)
        if int(ppid) == parent.pid and f"--database {name} " in arguments and not state.startswith("Z"):
            return int(pid)
    return None


def by_label(address: str, metric: str) -> dict[str, float]:
    """Return a metric of each database."""
    return {
        sample.labels["database"]: sample.value
        for family in text_string_to_metric_families(got(f"{address}metrics"))
        for sample in family.samples
        if sample.name == metric
    }


def test_one_database_is_killed_or_hangs_while_the_other_is_replicated(
    databases: Mapping[str, Database], tmp_path: Path
) -> None:
    path = write_file(tmp_path, databases)
    log = path.with_suffix(".log")
    shop, crm = databases.values()
    with following(path, "--engine", "local", "--listen", "0") as parent:
        eventually(lambda: are_equal(tmp_path, databases))
        address = log.read_text().partition("status page: ")[2].partition(",")[0]
        eventually(lambda: by_label(address, "logicalrep_database_up") == {"shop": 1, "crm": 1})
        eventually(lambda: get_status(f"{address}readyz")[0] == 200)
        eventually(lambda: by_label(address, "logicalrep_table_rows") == {"shop": 2, "crm": 2})
        eventually(lambda: "2 running, 0 not" in got(address))
        eventually(lambda: got(address).count("1 following; 0 loading; 0 stopped") == 2)
        eventually(lambda: f"<h1>{tmp_path / 'crm'}</h1>" in get_status(f"{address}crm/")[1])
        shop_pid, crm_pid = of_database(parent, "shop"), of_database(parent, "crm")
        assert shop_pid is not None
        assert crm_pid is not None
        os.kill(crm_pid, signal.SIGKILL)
        shop.execute("INSERT INTO t VALUES (3, 'three')")
        crm.execute("INSERT INTO t VALUES (3, 'three')")
        eventually(lambda: are_equal(tmp_path, databases))
        assert "crm: " in log.read_text()
        assert "the process ended by SIGKILL: it restarts in 1 s" in log.read_text()
        stopped = of_database(parent, "crm")
        assert stopped not in (None, crm_pid)
        assert of_database(parent, "shop") == shop_pid
        # Its page is served once it has its address.
        eventually(lambda: by_label(address, "logicalrep_database_up") == {"shop": 1, "crm": 1})
        assert stopped is not None
        os.kill(stopped, signal.SIGSTOP)
        shop.execute("INSERT INTO t VALUES (4, 'four')")
        crm.execute("INSERT INTO t VALUES (4, 'four')")
        eventually(lambda: are_equal(tmp_path, databases, "shop"))
        eventually(lambda: by_label(address, "logicalrep_database_up") == {"shop": 1, "crm": 0})
        eventually(lambda: by_label(address, "logicalrep_table_rows") == {"shop": 4})
        assert '<span class="bad">does not answer</span>' in got(address)
        code, text = get_status(f"{address}readyz")
        assert (code, [line.partition(": ")[0] for line in text.splitlines()]) == (503, ["shop", "crm"])
        os.kill(stopped, signal.SIGCONT)
        eventually(lambda: are_equal(tmp_path, databases))
        parent.terminate()
        assert parent.wait(60) == 130
        assert of_database(parent, "shop") is None
        assert of_database(parent, "crm") is None
    assert "Traceback" not in log.read_text()


def test_a_database_whose_process_keeps_ending_is_not_up(databases: Mapping[str, Database], tmp_path: Path) -> None:
    path = write_file(tmp_path, databases)
    log = path.with_suffix(".log")
    once = [*COMMAND, "replicate", "--config", str(path), "--once"]
    assert subprocess.run(once, cwd=ROOT, capture_output=True, check=False, timeout=120).returncode == 0
    databases["crm"].execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()"
    )
    with following(path, "--listen", "0") as parent:
        eventually(lambda: log.read_text().count("crm: error: [SLOT_LOST]") >= 2, seconds=240)
        address = log.read_text().partition("all: ")[2].partition("status page: ")[2].partition(",")[0]
        eventually(lambda: by_label(address, "logicalrep_database_up") == {"shop": 1, "crm": 0})
        ends = log.read_text().count("crm: error: [SLOT_LOST]")
        # Its next process serves a page and metrics for a moment.
        while log.read_text().count("crm: error: [SLOT_LOST]") == ends:
            assert by_label(address, "logicalrep_database_up")["crm"] == 0
        text = got(address)
        assert "[SLOT_LOST] replication slot" in text
        assert text.index("crm") < text.index("shop</a>")
        parent.terminate()
        assert parent.wait(60) == 130


@pytest.mark.thorough
def test_their_processes_end_with_a_parent_that_is_killed(databases: Mapping[str, Database], tmp_path: Path) -> None:
    with following(write_file(tmp_path, databases), "--engine", "local") as parent:
        eventually(lambda: are_equal(tmp_path, databases))
        pids = [of_database(parent, name) for name in NAMES]
        parent.kill()
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_the_exit_code_and_the_lines_tell_which_database_they_are_of(
    databases: Mapping[str, Database], tmp_path: Path
) -> None:
    shop, crm = databases.values()
    crm.execute("CREATE TABLE bad (id int PRIMARY KEY, at date)", "INSERT INTO bad VALUES (1, 'infinity')")
    shop.execute("INSERT INTO t VALUES (3, NULL)")
    options = {"engine": "local"}
    path = write_file(tmp_path, databases, shop={"options": options, "tables": {"t": {"masked": {"v": "nulled"}}}})
    once = [*COMMAND, "replicate", "--config", str(path), "--once", "--engine", "local", "--log", "json"]
    done = subprocess.run(once, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.returncode == 4, done.stderr
    assert {line["database"] for line in lines} == {*NAMES}
    assert [line["database"] for line in lines if "TABLES_STOPPED" in line["message"]].count("shop") == 0
    # The other process may write its last line later.
    of_crm = [line["message"] for line in lines if line["database"] == "crm"]
    assert of_crm[-1] == "the process ended with exit code 4: the other databases are not affected"
    assert are_equal(tmp_path, databases, "crm")
    assert find_differences(shop.dsn, str(tmp_path / "shop"), ["public.t"]) != {}


def test_commands_of_people_take_the_file(
    databases: Mapping[str, Database], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write_file(tmp_path, databases)
    of_file = ["--config", str(path)]

    def printed(*arguments: str, code: int = 0) -> str:
        assert main([*arguments, *of_file]) == code
        return capfd.readouterr().out

    assert printed("check", "--engine", "local").splitlines() == [
        f"shop, at {tmp_path}/shop:",
        "ready",
        f"crm, at {tmp_path}/crm:",
        "ready",
    ]
    assert printed("check", "--print-sql", "--database", "crm") == ""
    assert main(["check", "--print-sql", *of_file]) == 2
    assert capfd.readouterr().err == (
        "error: shop: --print-sql needs one database: select it with --database\n"
        "error: crm: --print-sql needs one database: select it with --database\n"
    )
    replicate_once(databases["shop"], tmp_path / "shop")
    assert printed("verify", "--database", "shop").splitlines()[0] == "public.t: equal, 2 rows"
    entries = [json.loads(line) for line in printed("verify", "--json").splitlines()]
    assert [entry["database"] for entry in entries] == ["shop", "shop", "crm"]
    entries = [json.loads(line) for line in printed("status", "--json").splitlines()]
    assert [(entry["database"], [*entry["tables"]]) for entry in entries] == [("shop", ["public.t"]), ("crm", [])]
    assert main(["resync", "public.t", *of_file]) == 2
    assert capfd.readouterr().err.splitlines()[-1] == f"error: select a database with --database: {path} has shop, crm"
    # One error ends no other.
    write_file(tmp_path, databases, shop={"to": "nope://x"})
    assert [line[:4] for line in printed("status", code=1).splitlines()] == ["shop", "crm,", "repl"]
    write_file(tmp_path, databases)
    assert printed("drop", "--delete-tables", "--yes").splitlines()[0] == f"shop, at {tmp_path}/shop:"
    assert databases["shop"].rows("SELECT 1 FROM pg_replication_slots WHERE database = current_database()") == []
    assert not any(tmp_path.glob("*/public"))


@pytest.mark.parametrize(
    ("options", "arguments", "text"),
    [
        ({}, ["--dsn", "dbname=x"], "sets this for each database"),
        ({}, ["--database", "crn"], "has no database crn, only shop, crm"),
        ({"crm": {"to": "{folder}/shop"}}, [], "shop and crm have the same destination, {folder}/shop"),
        ({"crm": {"to": "{folder}/shop/crm"}}, [], "shop and crm: one destination is in the other"),
        ({}, ["--slot", "one"], "shop and crm have the same slot, one of "),
        ({"shop": {"options": {"once": "true"}}}, [], "'once' is an option of the whole command, not of one database"),
        ({"shop": {"options": {"deletes": "sotf"}}}, [], ":6: shop: option 'deletes' is 'sotf'"),
        ({"shop": {"tables": {"t": {"histroy": True}}}}, [], "did you mean history?"),
        ({"shop": {"dsn_file": "x"}}, [], "shop must have 'dsn' or 'dsn_file', and not both"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    options: Mapping[str, dict[str, object]],
    arguments: list[str],
    text: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    sections = {
        name: {
            "dsn": "host=localhost dbname=x",
            "to": str(tmp_path / name),
            **{
                key: value.replace("{folder}", str(tmp_path)) if isinstance(value, str) else value
                for key, value in options.get(name, {}).items()
            },
        }
        for name in NAMES
    }
    path = tmp_path / "databases.yaml"
    path.write_text(yaml.safe_dump({"databases": sections}, sort_keys=False))
    assert main(["replicate", "--config", str(path), "--engine", "local", *arguments]) in (1, 2)
    assert text.replace("{folder}", str(tmp_path)) in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == [path]


def test_the_patience_for_a_process_that_hangs_is_less_than_that_of_prometheus() -> None:
    assert answers.ANSWER_TIMEOUT < 10
