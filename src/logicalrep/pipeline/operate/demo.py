"""`python -m logicalrep.pipeline.operate.demo`: replicates PostgreSQL under pgbench's load, and verifies the tables."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from logicalrep.observe.figures import Standing
from logicalrep.pipeline.state.state import State
from logicalrep.pipeline.storage.storage import Storage
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.local_server import Installation, LocalServer, find_installation
from logicalrep.postgres.server import Connection, query_wal_head

_SCALE = 3
_SECONDS = 30
_LONGEST_WAIT = 240.0
_BARS = "▁▂▃▄▅▆▇█"
_COLUMNS = 60


def main() -> int:
    """Run the demonstration; return 0 if the tables are equal."""
    installation = find_installation(18)
    with tempfile.TemporaryDirectory(prefix="logicalrep-demo-") as folder, LocalServer(installation) as server:
        lake = Path(folder) / "lake"
        server_and_storage = ["--dsn", server.dsn, "--to", str(lake)]
        _say(f"A PostgreSQL 18 runs; pgbench makes {_SCALE * 100_000:,} accounts ...")
        _pgbench(installation, server, "--initialize", f"--scale={_SCALE}", "--quiet").wait()
        with ConnectionSettings(server.dsn).connect() as connection:
            # Its rows have no key.
            connection.execute("ALTER TABLE public.pgbench_history REPLICA IDENTITY FULL")
            _say(f"pgbench changes them for {_SECONDS} seconds, up to 400 transactions a second; meanwhile")
            load = _pgbench(installation, server, f"--time={_SECONDS}", "--client=2", "--rate=400", "--no-vacuum")
            listen = f"127.0.0.1:{_free_port()}"
            replicate = _start("replicate", *server_and_storage, "--every", "1", "--listen", listen)
            try:
                lags = _wait_until_caught_up(lake, connection, load, replicate)
            finally:
                replicate.send_signal(signal.SIGTERM)
                replicate.wait(60)
        code = _start("verify", *server_and_storage).wait()
        _say("The Delta tables equal the server's." if code == 0 else "DIFFERENT: see above.")
        _say(f"While it ran, http://{listen}/ showed its tables and its lag, at most {max(lags) / 1e6:.1f} MB:")
        _say(_picture(lags))
        return code


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _pgbench(installation: Installation, server: LocalServer, *arguments: str) -> subprocess.Popen[bytes]:
    program = installation.bin / "pgbench"
    environment = os.environ | {"LD_LIBRARY_PATH": str(installation.folder / "lib"), "PGUSER": "postgres"}
    command = [str(program), *arguments, "--host", str(server.folder), "postgres"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


def _start(command: str, *arguments: str) -> subprocess.Popen[bytes]:
    _say(f"$ logicalrep {command} {' '.join(arguments)}")
    program = [sys.executable, "-P", "-m", "logicalrep.cli.main"]
    return subprocess.Popen([*program, command, *arguments], start_new_session=True)


def _wait_until_caught_up(
    lake: Path, connection: Connection, load: subprocess.Popen[bytes], replicate: subprocess.Popen[bytes]
) -> list[int]:
    """Wait until the load has ended and the tables are up to date; return the lags meanwhile, in bytes."""
    storage, start, lags = Storage(str(lake)), query_wal_head(connection), []
    end = None
    deadline = time.monotonic() + _LONGEST_WAIT
    while time.monotonic() < deadline and replicate.poll() is None:
        state, head = State.read(storage), query_wal_head(connection)
        lags.append(max((end or head) - max(state.lsn, start), 0))
        if end is None and load.poll() is not None:
            end = query_wal_head(connection)
            _say(f"pgbench has ended, the server's WAL ends at {end}; waiting for the tables ...")
        elif (
            end is not None
            and not lags[-1]
            and all(table.state is Standing.FOLLOWING for table in state.tables.values())
        ):
            return lags
        time.sleep(0.2)
    raise SystemExit("the tables did not reach the end of the server's WAL in time")


def _picture(figures: list[int]) -> str:
    size = -(-len(figures) // _COLUMNS) or 1
    peaks = [max(figures[start : start + size]) for start in range(0, len(figures), size)]
    return "".join(_BARS[peak * (len(_BARS) - 1) // max(max(peaks), 1)] for peak in peaks)


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
