"""One page, one set of metrics and one health check from the answers of the databases' processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

from logicalrep.cli.databases.processes import DatabaseProcess
from logicalrep.observe.overview import DatabaseAnswer, labelled_registry, overview
from logicalrep.observe.serving import HTML, TEXT, Answer, metrics_answer

ANSWER_TIMEOUT = 5.0
"""In seconds."""
_DATABASE_PATHS = ("", "metrics", "healthz", "readyz")


def answers_by_path(processes: Sequence[DatabaseProcess]) -> Mapping[str, Answer]:
    """Return the answers for `/`, `/metrics`, `/healthz` and `/readyz`, and each database's below `/NAME/`."""
    answers: dict[str, Answer] = {
        "/": lambda _: (200, HTML, overview(_ask_all(processes)).encode()),
        "/metrics": lambda _: metrics_answer(labelled_registry(_ask_all(processes))),
        "/healthz": lambda _: (200, TEXT, b"alive\n"),
        "/readyz": lambda _: _readiness(processes),
    }
    for process in processes:
        answers |= {f"/{process.name}/{path}": _forward(process, path) for path in _DATABASE_PATHS}
    return answers


def _forward(process: DatabaseProcess, path: str) -> Answer:
    return lambda query: _ask(process, path, query)


def _ask(process: DatabaseProcess, path: str, query: Mapping[str, str] | None = None) -> tuple[int, str, bytes]:
    # The status is 503 if the process does not answer.
    address = process.address
    if address is not None:
        with suppress(OSError, HTTPException):
            try:
                with urlopen(f"{address}{path}?{urlencode(query or {})}", timeout=ANSWER_TIMEOUT) as answer:
                    return answer.status, answer.headers["Content-Type"], answer.read()
            except HTTPError as error:
                return error.code, error.headers["Content-Type"], error.read()
    return 503, TEXT, f"{process.name} does not answer: {process.status_text}\n".encode()


def _ask_in_parallel(
    processes: Sequence[DatabaseProcess], ask: Callable[[DatabaseProcess], tuple[int, str, bytes]]
) -> list[tuple[int, str, bytes]]:
    # In parallel, so that several hanging processes delay the answer only once.
    with ThreadPoolExecutor(len(processes)) as pool:
        return list(pool.map(ask, processes))


def _ask_all(processes: Sequence[DatabaseProcess]) -> list[DatabaseAnswer]:
    answers = _ask_in_parallel(processes, lambda process: _ask(process, "metrics"))
    return [
        DatabaseAnswer(
            name=process.name,
            uri=process.to,
            process=process.status_text,
            is_failing=process.is_failing,
            metrics=body.decode() if status == 200 else None,
        )
        for process, (status, _, body) in zip(processes, answers, strict=True)
    ]


def _readiness(processes: Sequence[DatabaseProcess]) -> tuple[int, str, bytes]:
    answers = _ask_in_parallel(processes, lambda process: _ask(process, "readyz"))
    lines = [
        b"%s: %s" % (process.name.encode(), body) for process, (_, _, body) in zip(processes, answers, strict=True)
    ]
    return 200 if all(status == 200 for status, _, _ in answers) else 503, TEXT, b"".join(lines)
