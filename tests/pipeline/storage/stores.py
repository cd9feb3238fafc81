"""An object store on loopback, whose answers can be late, failures or lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Any, Literal

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

Trouble = Literal["late", "fail", "lose"] | None
"""What is done to a request: answered late; refused; or done, and then answered as if it had failed."""


class Store:
    """A server of S3 with one bucket."""

    def __init__(self) -> None:
        self.trouble: Callable[[str, str], Trouble] = lambda method, path: None
        """Takes a request's method and path; many threads call it."""
        self.accepts: Callable[[str], bool] = lambda key: True
        """Takes the access key of a signed request."""
        self._app = DomainDispatcherApplication(create_backend_app)
        # A request is atomic in a store; the stand-in's threads would look and write in two steps.
        self._turn = Lock()
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Silent)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.client = boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="key",
            aws_secret_access_key="the secret",
        )
        self.client.create_bucket(Bucket="lake")

    @property
    def options(self) -> dict[str, str]:
        """The options to reach it."""
        return {
            "aws_endpoint": self.url,
            "aws_allow_http": "true",
            "aws_access_key_id": "key",
            "aws_secret_access_key": "the secret",
            "aws_region": "us-east-1",
        }

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables to reach it."""
        return {name.upper(): value for name, value in self.options.items()} | {"AWS_ENDPOINT_URL": self.url}

    def keys(self) -> list[str]:
        """Return the keys of all objects."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket="lake")
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def close(self) -> None:
        self.trouble, self.accepts = lambda method, path: None, lambda key: True
        for key in self.keys():
            self.client.delete_object(Bucket="lake", Key=key)
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self.client.close()

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        trouble = self.trouble(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        if not self.accepts(environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition("/")[0]):
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"<Error><Code>ExpiredToken</Code></Error>"]
        if trouble == "late":
            time.sleep(0.5)
        if trouble == "fail":
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        elif trouble == "lose":
            with self._turn:
                list(self._app(environ, lambda *answer: None))
        else:
            with self._turn:
                return self._app(environ, start)  # type: ignore[no-any-return]
        start("503 Service Unavailable", [("Content-Length", "0")])
        return [b""]


class _Silent(MotoRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        """Write no line for each request."""


@contextmanager
def start_object_store() -> Iterator[Store]:
    """Yield a store, which ends with the context."""
    store = Store()
    try:
        yield store
    finally:
        store.close()


__all__ = ["Store", "Trouble", "start_object_store"]
