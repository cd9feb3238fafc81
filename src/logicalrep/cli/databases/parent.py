"""The parent of this process, which runs a process for each database; they exchange JSON lines over a socket."""

from __future__ import annotations

import json
import os
import queue
import socket
import threading
from typing import Any

from logicalrep.observe.events import PageServed, RunEvent
from logicalrep.observe.observer import Observer
from logicalrep.pipeline.engines.engine import EngineError


class ParentProcess(Observer):
    """The parent gets the page's URL and starts one Spark for all; this process stops when it asks or ends."""

    def __init__(self, descriptor: int, stop: threading.Event) -> None:
        os.set_inheritable(descriptor, False)
        self._socket = socket.socket(fileno=descriptor)
        self._stop = stop
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._number = 0
        self._has_ended = threading.Event()
        threading.Thread(target=self._listen, name="logicalrep-parent", daemon=True).start()

    def on_event(self, event: RunEvent) -> None:
        match event:
            case PageServed(address):
                self._send(address=address)

    def query_url(self) -> str:
        """Start the parent's Spark Connect and return its URL. Raises EngineError if it does not start."""
        self._send(spark=True)
        answer = self._answers.get()
        if "url" in answer:
            return str(answer["url"])
        raise EngineError(answer["text"], code=answer["code"])

    def has_ended(self, within: float) -> bool:
        """Return whether the Spark of the last URL has ended; wait for its end for at most `within` seconds."""
        return self._has_ended.wait(within)

    def _send(self, **message: object) -> None:
        self._socket.sendall(f"{json.dumps(message)}\n".encode())

    def _listen(self) -> None:
        with self._socket.makefile() as lines:
            for line in lines:
                message = json.loads(line)
                if "ended" in message:
                    if message["ended"] == self._number:
                        self._has_ended.set()
                    continue
                if "url" in message:
                    self._number = message["number"]
                    self._has_ended.clear()
                self._answers.put(message)
        self._stop.set()
