"""`--lineage` sends a run's events to a receiver, in the form of OpenLineage's client."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import schema_dataset

from logicalrep.observe.lineage import LineageNames
from logicalrep.pipeline.run.loop import TablesStoppedError
from tests.pipeline.replicating import replicate_once
from tests.postgres.servers import Database


class Receiver:
    def __init__(self, address: str) -> None:
        self.address = address
        self.events: list[dict[str, Any]] = []
        self.paths: set[str] = set()

    def states(self) -> list[str]:
        return [event["eventType"] for event in self.events]


@pytest.fixture(name="receiver")
def receiving() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.paths.add(self.path)
            receiver.events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(201)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield receiver
    server.shutdown()
    server.server_close()
    thread.join()


def parse(event: dict[str, Any]) -> RunEvent:
    """Return an event in the classes of the client, which check its values. Raises ValueError and TypeError."""
    for facets in (event["run"]["facets"], event["job"]["facets"], *(item["facets"] for item in event["outputs"])):
        assert all(facet["_schemaURL"].startswith("https://openlineage.io/spec/facets/") for facet in facets.values())
    for item in event["outputs"]:
        for field in item["facets"]["schema"]["fields"]:
            schema_dataset.SchemaDatasetFacetFields(**field)
    return RunEvent(
        eventTime=event["eventTime"],
        producer=event["producer"],
        run=Run(event["run"]["runId"]),
        job=Job(event["job"]["namespace"], event["job"]["name"]),
        eventType=RunState[event["eventType"]],
        inputs=[InputDataset(item["namespace"], item["name"]) for item in event["inputs"]],
        outputs=[OutputDataset(item["namespace"], item["name"]) for item in event["outputs"]],
    )


@pytest.fixture
def orders(db18: Database) -> Database:
    db18.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, price numeric(10,2))", "INSERT INTO orders VALUES (1, 2), (2, 3)"
    )
    return db18


def test_a_run_is_a_start_its_tables_and_an_end(orders: Database, tmp_path: Path, receiver: Receiver) -> None:
    lake = tmp_path / "lake"
    replicate_once(orders, lake, lineage=receiver.address)
    assert receiver.paths == {"/api/v1/lineage"}
    states = receiver.states()
    assert (states[0], set(states[1:-1]), states[-1]) == ("START", {"RUNNING"}, "COMPLETE")
    events = [parse(event) for event in receiver.events]
    assert len({event.run.runId for event in events}) == 1
    assert len({(event.job.namespace, event.job.name) for event in events}) == 1
    (output,) = receiver.events[-1]["outputs"]
    assert (output["namespace"], output["name"]) == ("file", str(lake / "public/orders"))
    fields = output["facets"]["schema"]["fields"]
    assert [(field["name"], field["type"]) for field in fields] == [("id", "int32"), ("price", "decimal128(10, 2)")]
    (source,) = receiver.events[-1]["inputs"]
    assert source["name"].endswith(".public.orders")
    rows = [
        item["outputFacets"]["outputStatistics"]["rowCount"]
        for event in receiver.events
        for item in event["outputs"]
        if item["outputFacets"]
    ]
    assert sum(rows) == 2
    receiver.events.clear()
    orders.execute("ALTER TABLE orders ADD note text", "INSERT INTO orders VALUES (3, 4, 'n')")
    replicate_once(orders, lake, lineage=receiver.address)
    (output,) = receiver.events[-1]["outputs"]
    assert [field["name"] for field in output["facets"]["schema"]["fields"]] == ["id", "price", "note"]


def test_an_error_is_a_failure_with_its_text(orders: Database, tmp_path: Path, receiver: Receiver) -> None:
    lake = tmp_path / "lake"
    replicate_once(orders, lake)
    orders.execute("ALTER TABLE orders ADD other regclass")
    with pytest.raises(TablesStoppedError):
        replicate_once(orders, lake, lineage=receiver.address)
    assert receiver.states()[-1] == "FAIL"
    assert "orders" in receiver.events[-1]["run"]["facets"]["errorMessage"]["message"]


def test_an_unreachable_receiver_stops_nothing(
    orders: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    replicate_once(orders, tmp_path / "lake", lineage="http://127.0.0.1:1")
    assert "the OpenLineage event COMPLETE cannot be sent" in caplog.text


@pytest.mark.parametrize(
    ("destination", "expected"),
    [
        ("s3://lake/shop/", ("s3://lake", "shop/public/t")),
        ("s3://lake", ("s3://lake", "public/t")),
        ("file:///lake", ("file", "/lake/public/t")),
        ("/lake", ("file", "/lake/public/t")),
    ],
)
def test_a_stored_table_has_the_name_of_its_store(destination: str, expected: tuple[str, str]) -> None:
    assert LineageNames("db:5432", "shop", destination).output("public/t") == expected
