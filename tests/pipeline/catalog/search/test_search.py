"""Random histories end as the server's tables, and plain changes need no load; the search finds what mends keep out.

Fifty histories of three phases take 19 to 37 CPU-seconds with the server's, 0.4 to 0.7 a history, measured beside other
work on two cores. About half is for loads, as a load opens three sessions; runs that are killed cost the most.
`make test` has fifty, `make test-all` two hundred and the mutations, and `make soak` as many as there are in SEARCH
minutes, from SEED on. A third of the tables are Iceberg tables; FORMAT=iceberg makes all of them Iceberg tables,
FORMAT=iceberg3 of version 3, CATALOG=sqlite registers the Iceberg tables in a catalog too, and CATALOG=owner uses
catalogs that own tables, another catalog for each seed.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from itertools import count

import pytest

from conformance.histories.generating import History
from logicalrep.pipeline.schema.table_settings import TableSettings
from tests.pipeline.catalog.schema_changes import TEXTS
from tests.pipeline.catalog.search.mutations import MUTATIONS
from tests.pipeline.catalog.search.playing import DOWN, Outcome, Schedule
from tests.pipeline.catalog.search.searching import AT_ONCE, histories, outcome, shortened
from tests.pipeline.companions import ALL_COMPANIONS
from tests.pipeline.formats.iceberg.catalogs.named import CATALOGS
from tests.pipeline.replicating import CATALOG, FORMATS
from tests.postgres.minors import OLDEST_AND_MIDDLE

pytestmark = pytest.mark.postgres

MINUTES, SEED = float(os.environ.get("SEARCH", "0")), int(os.environ.get("SEED", "1"))
FORMAT = os.environ.get("FORMAT")
_BATCHES = 6
"""The number of batches of histories within which the search must find each mutation."""


def schedule(seed: int, phases: int = 3) -> Schedule:
    """Return the schedule of a seed: of twenty-four, all differ."""
    settings = [TableSettings(), ALL_COMPANIONS, TableSettings(write_mode="merge-on-read"), TEXTS][seed % 4]
    owner = [*CATALOGS][seed % len(CATALOGS)] if CATALOG == "owner" else ""
    chosen = FORMAT or ("iceberg" if owner or seed % 3 == 2 else "delta")
    format, version = FORMATS[chosen]
    return Schedule(
        seed,
        phases,
        settings=replace(
            settings,
            format=format,
            format_version=version,
            change_data_feed=format == "delta" and seed % 5 in (1, 3),
        ),
        changes_publication=seed % 8 == 3,
        has_index=seed % 8 in (1, 2, 4, 7),
        is_ours=seed % 8 in (4, 5),
        has_schemas=seed % 8 == 6,
        # A publication that leaves changes out ends the command.
        kinds=DOWN if seed % 8 == 3 else Schedule.kinds,
        catalog=owner,
    )


def search(wanted: Schedule) -> None:
    """Play fifty histories; fail with what is wrong, and with the loads that plain changes needed."""
    played = histories(wanted)
    result = outcome(played, wanted)
    # Most of the server's refusals are statements that follow one which it refused.
    assert result.refused < result.statements / 10
    assert "\n\n".join(map(str, shortened(played, wanted, result))) == ""
    # A service may remove the proof that rows are unchanged.
    has_service = bool(wanted.catalog) and CATALOGS[wanted.catalog].has_service
    if not wanted.changes_publication and not has_service:
        assert loads_of_plain_changes(played, result) == {}


def loads_of_plain_changes(played: list[History], result: Outcome) -> dict[str, list[str]]:
    """Return the reasons for loads of tables that had plain changes alone."""
    plain = {history.name for history in played if history.is_plain}
    return {name: reasons for name, reasons in result.loads.items() if name in plain}


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (3, 4, 5, 6))])
def test_random_schedules_end_with_the_servers_rows(seed: int) -> None:
    search(schedule(seed))


@pytest.mark.thorough
@pytest.mark.parametrize("version", OLDEST_AND_MIDDLE)
def test_random_schedules_of_old_minors_end_with_the_servers_rows(version: str) -> None:
    # Column lists and row filters exist since 15, and 15.0 does not send what the lists say.
    has_lists = version != "15.0" and not version.startswith(("13.", "14."))
    search(replace(schedule(1 if has_lists else 4), version=version))


@pytest.mark.skipif(not MINUTES, reason="SEARCH has the minutes")
def test_random_schedules_end_with_the_servers_rows_for_minutes() -> None:
    end = time.monotonic() + 60 * MINUTES
    for seed in count(SEED):
        search(schedule(seed, phases=2 + seed % 4))
        if time.monotonic() > end:
            return


@pytest.mark.thorough
@pytest.mark.parametrize("name", MUTATIONS)
def test_the_search_finds_each_disabled_safeguard(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS[name](monkeypatch)
    for seed in range(1, 1 + _BATCHES):
        wanted = Schedule(seed, phases=3, changes_publication=seed == 3, has_schemas=seed == 6, kinds=DOWN)
        # A comparison has to tell it: an error that ends `replicate` may have another cause.
        if any(" after phase " in why for why in outcome(histories(wanted), wanted).wrong.values()):
            return
    raise AssertionError(f"{AT_ONCE * _BATCHES} histories are right though {name}")
