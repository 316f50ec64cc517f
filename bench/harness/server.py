"""A PostgreSQL server for the benchmarks alone: own data folder, own port, own user when root starts it.

Enters: the folder with `initdb`, and a work folder. Leaves: a running server, its connection strings, SQL, and the
CPU all its processes have used. It refuses to run where the server's user cannot reach the work folder.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

# Everything that differs from a fresh cluster, and why. fsync stays on.
SETTINGS = {
    "shared_buffers": (
        "1GB",
        "a usual share of this memory; the default of 128 MB is meant to start anywhere",
    ),
    "max_wal_size": ("4GB", "as the published experiment: no checkpoint because of WAL inside a run"),
    "checkpoint_timeout": ("30min", "as the published experiment; every run starts right after a CHECKPOINT"),
    "autovacuum": ("off", "or the vacuum of one run's table would run during the next"),
}
DATABASE = "bench"
SUPERUSER = "postgres"
# How long backends get to leave after their client has, before the CPU is read.
SETTLE_S = 2.0
CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def find_binaries(root: Path) -> Path:
    """The folder with `initdb`, `pg_ctl` and `postgres`: PostgreSQL 15 of the system, else that of the tests."""
    for folder in (Path("/usr/lib/postgresql/15/bin"), root / "target/servers/pg15/bin"):
        if (folder / "initdb").exists():
            return folder
    raise FileNotFoundError("no PostgreSQL 15: install postgresql-15, or run `cargo xtask servers`")


def free_port() -> int:
    """A TCP port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """One running server; `with Server(...)` stops it and removes its data at the end."""

    def __init__(self, binaries: Path, work: Path) -> None:
        self.binaries = binaries
        self.folder = work / f"server-{os.getpid()}"
        self.port = free_port()
        self.user = self._unprivileged_user()

    @staticmethod
    def _unprivileged_user() -> str | None:
        """PostgreSQL refuses root: the user to run as, or None to stay who we are."""
        if os.geteuid() != 0:
            return None
        names = {entry.pw_name for entry in pwd.getpwall()}
        return "postgres" if "postgres" in names else "nobody"

    def __enter__(self) -> Server:
        self.folder.mkdir(parents=True)
        if self.user:
            shutil.chown(self.folder, self.user)
        self._as_user("initdb", "-D", str(self.data), "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
        with (self.data / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, (value, _) in SETTINGS.items())
            conf.write(f"port = {self.port}\nlisten_addresses = '127.0.0.1'\n")
            conf.write(f"unix_socket_directories = '{self.folder}'\n")
        self._as_user("pg_ctl", "-D", str(self.data), "-w", "-l", str(self.data / "log"), "start")
        subprocess.run(self.psql(f"CREATE DATABASE {DATABASE}", database="postgres"), check=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._as_user("pg_ctl", "-D", str(self.data), "-w", "-m", "immediate", "stop")
        shutil.rmtree(self.folder)

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.folder / "data"

    @property
    def conninfo(self) -> str:
        """Keyword form, over the unix socket: what every tool that can is given."""
        return f"host={self.folder} port={self.port} user={SUPERUSER} dbname={DATABASE}"

    @property
    def url(self) -> str:
        """URL form, over TCP, for tools that take nothing else. The password is never looked at (trust)."""
        return f"postgresql://{SUPERUSER}:trust@127.0.0.1:{self.port}/{DATABASE}?sslmode=disable"

    def _as_user(self, program: str, *arguments: str) -> None:
        drop = []
        if self.user:
            drop = [
                "setpriv",
                f"--reuid={self.user}",
                f"--regid={pwd.getpwnam(self.user).pw_gid}",
                "--clear-groups",
            ]
        # The server keeps pg_ctl's streams open: a pipe would never end, so its words go to a file.
        log = self.folder.with_suffix(".log")
        with log.open("wb") as output:
            command = [*drop, "env", "HOME=/tmp", str(self.binaries / program), *arguments]
            done = subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False)
        text = log.read_text(errors="replace")
        log.unlink()
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed (as {self.user or 'this user'}, in {self.folder}):\n{text}")

    def psql(self, *statements: str, database: str = DATABASE) -> list[str]:
        """The psql command that runs `statements`, each in a transaction of its own."""
        conninfo = self.conninfo.replace(f"dbname={DATABASE}", f"dbname={database}")
        return psql_command(conninfo, *statements)

    def query(self, *statements: str) -> str:
        """What the statements print, fields separated by `|`."""
        done = subprocess.run(self.psql(*statements), check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def run_file(self, path: Path) -> None:
        """Runs a file of SQL."""
        subprocess.run([*self.psql(), "-f", str(path)], check=True, stdout=subprocess.DEVNULL)

    def empty(self, tables: Iterable[str]) -> None:
        """Makes every run start alike: empty tables, nothing dirty."""
        self.query(f"TRUNCATE {', '.join(tables)}", "CHECKPOINT")

    def settings(self) -> dict[str, str]:
        """Every setting that is not the built-in default, as the server sees it, and those that matter anyway."""
        rows = self.query(
            "SELECT name || '=' || current_setting(name) FROM pg_settings WHERE name IN ("
            "'server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'wal_level', 'shared_buffers',"
            "'max_wal_size', 'checkpoint_timeout', 'autovacuum', 'maintenance_work_mem', 'wal_compression') ORDER BY 1"
        )
        return dict(row.split("=", 1) for row in rows.splitlines())

    def wait_until_idle(self) -> None:
        """Waits until no backend but the background ones is left, at most `SETTLE_S`."""
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline and self._backends():
            time.sleep(0.005)

    def cpu_s(self) -> float:
        """CPU seconds of the postmaster, its children, and every process that ever left it."""
        postmaster = self._postmaster()
        ticks = sum(_cpu_ticks(pid) for pid in [postmaster, *_children(postmaster)])
        return ticks / CLOCK_TICKS_PER_S

    def _postmaster(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])

    def _backends(self) -> list[int]:
        """Processes that serve a client: their title begins with the user's name."""
        children = _children(self._postmaster())
        return [pid for pid in children if f"postgres: {SUPERUSER} ".encode() in _read(pid, "cmdline")]


def psql_command(conninfo: str, *statements: str) -> list[str]:
    """A psql that stops at the first error, reads no start-up file and prints bare values."""
    options = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", conninfo]
    return ["psql", *options, *(word for statement in statements for word in ("-c", statement))]


def _read(pid: int, name: str) -> bytes:
    """A file of /proc, empty when the process has gone."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _stat(pid: int) -> list[bytes]:
    """/proc/PID/stat from the state on (its third field); the name before it may hold spaces."""
    return _read(pid, "stat").rpartition(b")")[2].split()


def _children(parent: int) -> list[int]:
    pids = (int(entry) for entry in os.listdir("/proc") if entry.isdigit())
    return [pid for pid in pids if (fields := _stat(pid)) and int(fields[1]) == parent]


def _cpu_ticks(pid: int) -> int:
    """utime, stime, and those of children waited for (proc(5), fields 14 to 17)."""
    return sum(int(ticks) for ticks in _stat(pid)[11:15])
