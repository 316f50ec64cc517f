"""Real servers for the tests: throw-away PostgreSQL clusters from the programs in HOWDAH_TEST_SERVERS.

`cargo xtask servers` installs these programs; a cluster is made once per major and test run, and every test
gets a database of its own in it. PostgreSQL refuses to run as root, so root's servers run as `postgres`, or
as `howdah`, the user that howdah itself would add.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = Path(os.environ.get("HOWDAH_TEST_SERVERS", "target/servers")).resolve()
MAJORS = [13, 15, 18]
START_SECONDS_MAX = 600
# What the servers of a test run take at most, several times.
ROOM_IN_MEMORY = 4 << 30


@dataclass(frozen=True)
class Database:
    """An empty database."""

    conninfo: str

    def sql(self, text: str) -> str:
        """Run SQL by psql; fields come back with `|` between them, rows as lines."""
        command = [
            PROGRAMS / "psql/bin/psql",
            "-XAtq",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            self.conninfo,
            "-c",
            text,
        ]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@dataclass(frozen=True)
class Server:
    """A running server."""

    conninfo: str

    def database(self, name: str) -> Database:
        """Make an empty database."""
        Database(f"{self.conninfo} dbname=postgres").sql(f'CREATE DATABASE "{name}"')
        return Database(f"{self.conninfo} dbname={name}")


def _account() -> dict[str, object]:
    """Return the arguments of `subprocess` for the user that runs servers."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "howdah"):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    subprocess.run(["useradd", "--system", "--user-group", "--no-create-home", "howdah"], check=True)
    return _account()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _parent() -> str | None:
    """Return where the data goes: memory where that has room, since it need not outlive the machine."""
    memory = Path("/dev/shm")
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) * 1024
        if min(shutil.disk_usage(memory).free, available) >= ROOM_IN_MEMORY:
            return str(memory)
    return None


@contextlib.contextmanager
def _running(major: int) -> Iterator[Server]:
    programs = PROGRAMS / f"pg{major}/bin"
    account = _account()
    folder = Path(tempfile.mkdtemp(prefix="howdah-python-", dir=_parent()))
    try:
        if account:
            os.chown(folder, int(str(account["user"])), int(str(account["group"])))
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
        subprocess.run(
            [programs / "initdb", "--auth=trust", "--encoding=UTF8", "--locale=C", "--username=postgres",
             "--no-sync", "--pgdata", folder / "data"],
            check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL, **account,
        )  # fmt: skip
        port = _free_port()
        settings = {
            "port": port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": folder,
            "fsync": "off",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (folder / "log").open("w") as log:
            server = subprocess.Popen(
                [programs / "postgres", "-D", folder / "data", *options],
                cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **account,
            )  # fmt: skip
        try:
            ready = Server(f"host=127.0.0.1 port={port} user=postgres")
            _wait_for(ready, server, folder / "log")
            yield ready
        finally:
            server.send_signal(signal.SIGQUIT)
            server.wait()
    finally:
        shutil.rmtree(folder)


def _wait_for(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    began = time.monotonic()
    while True:
        try:
            Database(f"{server.conninfo} dbname=postgres").sql("SELECT 1")
        except subprocess.CalledProcessError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() - began < START_SECONDS_MAX, log.read_text()
            time.sleep(0.05)
        else:
            return


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Run a server of the newest major for all tests."""
    with _running(MAJORS[-1]) as running:
        yield running


@pytest.fixture(scope="session", params=MAJORS)
def each_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Run a server of each supported major in turn."""
    with _running(request.param) as running:
        yield running


@pytest.fixture
def database(server: Server, request: pytest.FixtureRequest) -> Database:
    """Make an empty database for one test."""
    return server.database(f"d{abs(hash(request.node.nodeid))}")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no variable of the caller name a server or an encoding."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
