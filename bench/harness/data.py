"""Makes the files the workloads load, once, below the work folder; a newer generator makes them anew.

Enters: the size wanted. Leaves: paths and how many rows each file has. The folder and the files can be read by the
server's user, for server-side COPY.
"""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

IMDB_TABLES = {
    "title.akas": "staging.title",
    "title.basics": "staging.title_basics",
    "title.crew": "staging.title_crew",
    "title.episode": "staging.title_episode",
    "title.principals": "staging.title_principals",
    "title.ratings": "staging.title_ratings",
    "name.basics": "staging.name_basics",
}
# Gives title.principals 4,000,000 rows.
IMDB_SCALE = 0.1
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Dataset:
    """A file, the table it goes to and how COPY is told to read it."""

    path: Path
    table: str
    rows: int
    delimiter: str
    null: str = ""

    @property
    def copy_options(self) -> str:
        """The option list of COPY, as a user would write it."""
        delimiter = ", DELIMITER E'\\t'" if self.delimiter == "\t" else ""
        null = f", NULL '{self.null}'" if self.null else ""
        return f"(FORMAT csv, HEADER true{delimiter}{null})"

    @property
    def work(self) -> str:
        """How the tables of results call it."""
        return f"{self.path.name}, {self.rows:,} rows"


class Data:
    """The files of one size: everything, or a tenth with `quick`."""

    def __init__(self, root: Path, work: Path, quick: bool) -> None:
        self.root = root
        self.share = 0.1 if quick else 1.0
        self.folder = work / ("data-quick" if quick else "data")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.generator = root / "target/release/datasets"
        subprocess.run(["cargo", "build", "-q", "--release", "-p", "howdah-datasets"], cwd=root, check=True)

    def imdb(self, stem: str, *, gzip: bool) -> Dataset:
        """One of IMDb's seven files in shape; the gzip file has the same content as the plain one."""
        scale = str(IMDB_SCALE * self.share)
        plain = self._made(f"{stem}.tsv", "imdb", "--scale", scale, "--only", stem)
        path = self._made(f"{stem}.tsv.gz", "imdb", "--scale", scale, "--only", stem, "--gzip") if gzip else plain
        return Dataset(path, IMDB_TABLES[stem], _count_rows(plain), "\t")

    def lineitem(self) -> Dataset:
        """A million rows of TPC-H lineitem."""
        self._fetch("lineitem", "--scale", str(0.1666 * self.share), "--venv", str(self.folder.parent / "venv"))
        path = self.folder / "lineitem.csv"
        return Dataset(path, "lineitem", _count_rows(path), ",")

    def flights(self) -> Dataset:
        """The real flights of 2013, at every size of the rest."""
        self._fetch("flights")
        path = self.folder / "flights.csv"
        return Dataset(path, "flights", _count_rows(path), ",", null="NA")

    def sensor_log(self) -> Dataset:
        """Four million rows of the published parallel-COPY experiment."""
        path = self._made("sensor_log.csv", "sensor", "--rows", str(int(4_000_000 * self.share)))
        return Dataset(path, "sensor_log", _count_rows(path), ",")

    def documents(self, rows: int = 40_000) -> Dataset:
        """So many JSON documents of 20 kB; each number in a file of its own."""
        name = "documents.csv" if rows == 40_000 else f"documents-{rows}.csv"
        path = self._made(name, "documents", "--rows", str(int(rows * self.share)), written="documents.csv")
        return Dataset(path, "documents", _count_rows(path), ",")

    def quoted(self) -> Path:
        """256 MiB of CSV full of quotes and quoted newlines."""
        return self._made("quoted.csv", "quoted", "--bytes", str(int((256 << 20) * self.share)))

    def big_rows(self) -> Dataset:
        """2 GiB of small rows with one of 8 MiB in every 200 MB."""
        path = self._made("bigrow.csv", "bigrow", "--bytes", str(int((2 << 30) * self.share)))
        return Dataset(path, "bigrow", _count_rows(path), ",")

    def tiny(self) -> Dataset:
        """About 1 KB of title.principals."""
        return self.head(self.imdb("title.principals", gzip=False), 24)

    @staticmethod
    def head(dataset: Dataset, rows: int) -> Dataset:
        """The first rows of a plain file, for tools too slow for all of it."""
        if rows >= dataset.rows:
            return dataset
        path = dataset.path.with_name(f"{dataset.path.stem}-{rows}{dataset.path.suffix}")
        with dataset.path.open("rb") as source, path.open("wb") as part:
            part.writelines(source.readline() for _ in range(rows + 1))
        return dataclasses.replace(dataset, path=path, rows=rows)

    @staticmethod
    def parts(whole: Path, parts: int, *, header: bool) -> Sequence[Path]:
        """A plain file without its header, if it has one, cut at line ends into files of about equal size."""
        paths = [whole.with_suffix(f".part{number}") for number in range(parts)]
        with whole.open("rb") as source:
            if header:
                source.readline()
            size_bytes = whole.stat().st_size
            for number, path in enumerate(paths, start=1):
                with path.open("wb") as part:
                    end = size_bytes * number // parts
                    while (left := end - source.tell()) > 0:
                        part.write(source.read(min(left, BLOCK_BYTES)))
                    part.write(source.readline())
        return paths

    def _fetch(self, what: str, *options: str) -> None:
        script = str(self.root / "bench/datasets/fetch.py")
        subprocess.run([sys.executable, script, what, "--out", str(self.folder), *options], check=True)

    def _made(self, name: str, *arguments: str, written: str | None = None) -> Path:
        """The file, made unless it is there; `written` is what the generator calls it, where that differs."""
        path = self.folder / name
        if not path.exists() or path.stat().st_mtime < self.generator.stat().st_mtime:
            part = self.folder / "part"
            shutil.rmtree(part, ignore_errors=True)
            subprocess.run([str(self.generator), *arguments, "--out", str(part)], check=True)
            (part / (written or name)).rename(path)
            part.rmdir()
        return path


def _count_rows(path: Path) -> int:
    """Lines but the header: no dataset loaded here has newlines inside fields."""
    newlines = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            newlines += block.count(b"\n")
    return newlines - 1
