"""A place in an object store: loaded, followed, verified, and its secrets in nothing that is written."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from logicalrep.tables.delta.place import NoSuchPlaceError, Place, PlaceError
from logicalrep.tables.replicate.progress import shown
from logicalrep.tables.replicate.replicate import replicate_with
from logicalrep.tables.settings import ReplicateSettings
from logicalrep.tables.tasks import LocalTasks
from logicalrep.tables.verify.verifying import verify
from tests.postgres.servers import Database
from tests.tables.test_replicate import shop

moto = pytest.importorskip("moto.server")

__all__ = ["shop"]

SECRET = "k3yword"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Yield the options of an object store on this machine, which has a bucket named `lake`."""
    import boto3

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    server = moto.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    try:
        client = boto3.client(
            "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="id", aws_secret_access_key=SECRET
        )
        client.create_bucket(Bucket="lake")
        yield {
            "aws_endpoint": endpoint,
            "aws_region": "us-east-1",
            "aws_access_key_id": "id",
            "aws_secret_access_key": SECRET,
            "aws_allow_http": "true",
        }
    finally:
        server.stop()


def test_files(store: dict[str, str]) -> None:
    place = Place("s3://lake/some folder", store)
    assert place.read("a/b") is None
    assert place.create("a/b", b"1")
    assert not place.create("a/b", b"2")
    assert place.read("a/b") == b"1"
    place.write("a/b", b"3")
    with place.open("a/b") as file:
        assert file.read() == b"3"
    assert [path.rpartition("/")[2] for path in place.list("a")] == ["b"]
    place.delete("a/b")
    place.delete("a/b")
    assert place.list("a") == []


@pytest.mark.postgres
def test_a_place_is_replicated_and_verified(shop: Database, store: dict[str, str], tmp_path: Path) -> None:
    log = io.StringIO()
    place = Place("s3://lake/shop", store)
    settings = ReplicateSettings(connection=shop.settings, to=place.uri, storage_options=store, once=True)
    for _ in range(2):
        with shown(log) as report:
            replicate_with(settings, report, tasks=LocalTasks())
        assert {verdict.result for verdict in verify(shop.settings, place)} == {"equal"}
        shop.execute("UPDATE customer SET city = 'Bamberg' WHERE id < 100", "DELETE FROM audit")
    stored = [path for path in place.list("") if path.endswith(".json")]
    assert len(stored) > 5
    texts = [log.getvalue(), repr(settings), repr(place)]
    for path in stored:
        content = place.read(path.removeprefix("shop/"))
        assert content is not None
        texts.append(content.decode())
    assert not [text for text in texts if SECRET in text]


def test_a_store_that_is_away_or_misnamed_is_one_sentence(store: dict[str, str]) -> None:
    away = Place("s3://lake/x", store | {"aws_endpoint": "http://127.0.0.1:1", "timeout": "1s"})
    with pytest.raises(PlaceError) as error:
        away.read("a")
    assert "\n" not in str(error.value)
    with pytest.raises(NoSuchPlaceError, match="'nonsense' is not valid"):
        Place("s3://lake/x", store | {"nonsense": SECRET}).read("a")
    assert SECRET not in str(error.value)
    with pytest.raises(PlaceError):
        Place("s3://no-such-bucket/x", store).write("a", b"")
