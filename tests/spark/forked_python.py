"""Processes of Python that have imported what they need: copies of one process, which a test process starts once.

Spark starts a new Python for the source of each streaming query, which needs more than a second of processor time to
import PySpark and this package. `python forked_python.py serve SOCKET` imports them and then copies itself for each
`python forked_python.py start SOCKET MODULE`, which behaves as `python -m MODULE` would.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"
"""The module for which it is worth it."""


def _serve(path: str) -> tuple[str, socket.socket]:
    """Copy this process for each client; return the client's module, and its socket, in each copy."""
    import importlib

    for module in (RUNNER, "logicalrep.spark.auto", "logicalrep.spark.peek.slot_range"):
        importlib.import_module(module)
    # A program that is run must not have been imported by its name.
    del sys.modules[RUNNER]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    parent = os.getppid()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        server.settimeout(10)
        while True:
            try:
                client, _ = server.accept()
            except TimeoutError:
                # Killed tests do not end this process.
                if os.getppid() != parent:
                    sys.exit()
                continue
            if os.fork() == 0:
                break
            client.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size = int.from_bytes(client.recv(4, socket.MSG_WAITALL))
    first, files, _, _ = socket.recv_fds(client, size, 3)
    data = first + client.recv(size - len(first), socket.MSG_WAITALL) if len(first) < size else first
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    folder, module, *variables = os.fsdecode(data).split("\0")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update((name, value) for name, _, value in (variable.partition("=") for variable in variables))
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [folder, *(path for path in paths if path and path not in sys.path)]
    client.sendall(os.getpid().to_bytes(4))
    return module, client


def _start(path: str, module: str) -> None:
    """Have a module run in a copy of the server, with this process's files and variables, and wait for its end."""
    variables = (f"{name}={value}" for name, value in os.environ.items())
    data = os.fsencode("\0".join((os.getcwd(), module, *variables)))
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        server.sendall(len(data).to_bytes(4))
        sent = socket.send_fds(server, [data], [0, 1, 2])
        server.sendall(data[sent:])
        pid = int.from_bytes(server.recv(4, socket.MSG_WAITALL))
        signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
        # The socket is closed when the copy has ended.
        server.recv(1)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        import runpy

        _module, _client = _serve(sys.argv[2])
        runpy.run_module(_module, run_name="__main__", alter_sys=True)
    else:
        _start(sys.argv[2], sys.argv[3])
