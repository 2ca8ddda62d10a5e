#!/usr/bin/env python3
"""Puts a SPARK_HOME of each asked-for version into the cache and prints its path.

A home is built in a directory beside its final place and renamed when it is complete, so that a
home that exists is a good one, whatever was interrupted before.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections import defaultdict, namedtuple
from pathlib import Path

HERE = Path(__file__).resolve().parent
Version = namedtuple("Version", "name spark scala source depth java")

_FETCHING = defaultdict(threading.Lock)

# Only what running an application needs; examples, data and R stay in the archive.
WANTED = ("jars", "bin", "sbin")


def cache_root():
    return Path(os.environ.get("FARO_CACHE") or Path.home() / ".cache" / "faro")


def all_versions():
    rows = []
    for line in (HERE / "spark-versions").read_text().splitlines():
        fields = line.split("#")[0].split()
        if fields:
            rows.append(Version(*fields))
    return rows


def versions_named(names):
    known = {v.name: v for v in all_versions()}
    unknown = [n for n in names if n not in known]
    if unknown:
        raise SystemExit(
            f"spark_home: unknown version {', '.join(unknown)}; "
            f"tests/setup/spark-versions has: {', '.join(known)}"
        )
    return [known[n] for n in names]


def home_path(version):
    return cache_root() / "spark" / version.name


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(command, **options):
    """Runs quietly; the output is shown only when the command fails."""
    done = subprocess.run(
        [str(c) for c in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **options,
    )
    if done.returncode != 0:
        say(done.stdout[-4000:])
        raise SystemExit(
            f"spark_home: exit code {done.returncode} from: {' '.join(str(c) for c in command)}"
        )


def download_environment():
    """A virtual environment that can read the metadata of pyspark's source archives."""
    place = cache_root() / "tools" / "pyspark-download"
    if (place / "ready").exists():
        return place
    shutil.rmtree(place, ignore_errors=True)
    run([sys.executable, "-m", "venv", place])
    run([place / "bin" / "pip", "install", "-q", "setuptools<80", "wheel"])
    (place / "ready").touch()
    return place


def pypi_archive(version, scratch):
    pip = download_environment() / "bin" / "pip"
    run(
        [
            pip,
            "download",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "--no-binary",
            "pyspark",
            "-d",
            scratch,
            f"pyspark=={version.spark}",
        ],
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    archives = list(Path(scratch).glob("pyspark-*.tar.gz"))
    if len(archives) != 1:
        raise SystemExit(f"spark_home: expected one pyspark archive, found {archives}")
    return archives[0]


def place_in_home(path):
    """Where a file of pyspark's archive belongs in a home; None: nowhere."""
    parts = Path(path).parts
    if ".." in parts:
        return None
    if len(parts) >= 3 and parts[1] == "deps" and parts[2] in WANTED:
        return Path(*parts[2:])
    if len(parts) == 3 and parts[1] == "lib" and parts[2].endswith(".zip"):
        return Path("python", "lib", parts[2])
    return None


def fill_from_pypi(version, home, scratch):
    with tarfile.open(pypi_archive(version, scratch)) as archive:
        for member in archive:
            place = place_in_home(member.name)
            if place:
                member.name = str(place)
                archive.extract(member, home)


def ensure_python(version):
    """A home with PySpark's libraries, which those of older caches lack."""
    home = ensure(version)
    if (home / "python").is_dir():
        return home
    if version.source != "pypi":
        raise SystemExit(f"spark_home: {version.name} comes from {version.source}, without PySpark")
    say(f"  Spark {version.name}: fetching its Python part ...")
    with tempfile.TemporaryDirectory(prefix=f".{version.name}.", dir=home.parent) as part:
        filled = Path(part) / "home"
        filled.mkdir()
        fill_from_pypi(version, filled, part)
        (filled / "python").rename(home / "python")
    return home


POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.faro.setup</groupId><artifactId>spark-home</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.spark</groupId>
    <artifactId>spark-sql_{scala}</artifactId><version>{spark}</version>
  </dependency></dependencies>
</project>
"""


# Named in full: a prefix is looked up in lists that Maven keeps, also that it once had none.
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


def fill_from_maven(version, home, scratch):
    pom = Path(scratch) / "pom.xml"
    pom.write_text(POM.format(scala=version.scala, spark=version.spark))
    run(
        [
            "mvn",
            "-q",
            "-B",
            "-f",
            pom,
            COPY_DEPENDENCIES,
            "-DincludeScope=runtime",
            f"-DoutputDirectory={home / 'jars'}",
        ]
    )
    (home / "bin").mkdir()
    shutil.copy(HERE / "spark-submit-from-jars", home / "bin" / "spark-submit")


def ensure(version):
    """Fetched once, whatever number of threads asks."""
    with _FETCHING[version.name]:
        home = home_path(version)
        return home if home.is_dir() else fetch(version, home)


def fetch(version, home):
    say(f"  Spark {version.name}: fetching (about 300 MB, from {version.source}) ...")
    started = time.monotonic()
    home.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{version.name}.", dir=home.parent))
    try:
        filled = part / "home"
        filled.mkdir()
        {"pypi": fill_from_pypi, "maven": fill_from_maven}[version.source](version, filled, part)
        found = list((filled / "jars").glob(f"spark-core_{version.scala}-{version.spark}.jar"))
        if not found or not (filled / "bin" / "spark-submit").exists():
            raise SystemExit(
                f"spark_home: what was fetched for {version.name} has no spark-core or "
                "no bin/spark-submit"
            )
        try:
            filled.rename(home)
        except OSError:
            # Another process was first; its home is as good as this one.
            if not home.is_dir():
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    say(f"  Spark {version.name}: ready in {time.monotonic() - started:.0f} s")
    return home


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="*", help="names in spark-versions (default: all)")
    chosen = parser.parse_args().versions or [v.name for v in all_versions()]
    for version in versions_named(chosen):
        print(ensure(version))


if __name__ == "__main__":
    main()
