"""An archive of Spark's classes for the JVMs of short applications (the JVM's class-data sharing).

Loading and verifying the same 10,000 classes is a third of what a short application costs: five
queries took 44 s of CPU in three JVMs, and take 29 s with the archive.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import spark_home

from . import launch

# The driver of such an application has loaded most of what tests need.
CASES = ["groupByKey", "sqlAggregate", "sqlJoin"]

_lock = threading.Lock()
_making: dict[Path, threading.Lock] = {}
# What could not be made is not tried again.
_tried: set[Path] = set()


@functools.cache
def java_version() -> bytes:
    """Asked once: it is a JVM's start."""
    command = [launch.java_program(), "-version"]
    return subprocess.run(command, check=True, capture_output=True).stderr


def place_of(version: spark_home.Version, faro_jar: Path | None) -> Path:
    """Of this JVM; the class path of 3.x begins with Faro's jar, which an archive must have too."""
    key = java_version()
    if faro_jar and version.spark.startswith("3."):
        state = faro_jar.stat()
        key += f"{faro_jar} {state.st_size} {state.st_mtime_ns}".encode()
    digest = hashlib.sha256(key).hexdigest()[:12]
    return spark_home.cache_root() / "classes" / f"{of_java(version)}-{digest}" / "classes.jsa"


def of_java(version: spark_home.Version) -> str:
    """How the names begin: runs on another JVM keep archives of their own."""
    return f"{version.name}-java-{hashlib.sha256(java_version()).hexdigest()[:6]}"


def found(version: spark_home.Version, faro_jar: Path | None) -> Path | None:
    archive = place_of(version, faro_jar)
    return archive if archive.exists() else None


def ensure(version: spark_home.Version, faro_jar: Path | None, jobs_jar: Path) -> Path | None:
    """Made from an application of its own (about 25 s) when it is missing; None: there is none."""
    archive = place_of(version, faro_jar)
    with _lock:
        making = _making.setdefault(archive, threading.Lock())
    with making:
        if not archive.exists() and archive not in _tried:
            _tried.add(archive)
            make(archive, version, faro_jar, jobs_jar)
    return archive if archive.exists() else None


def make(archive: Path, version: spark_home.Version, faro_jar: Path | None, jobs_jar: Path) -> None:
    place = archive.parent
    for old in place.parent.glob(f"{of_java(version)}-????????????"):
        shutil.rmtree(old, ignore_errors=True)
    # The archive names the jars of this home, and is good for every other link to them.
    home = launch.home_of_links(place, spark_home.ensure(version))
    scratch = Path(tempfile.mkdtemp(prefix="faro-classes-"))
    part = place / "classes.part"
    try:
        conf = {
            **launch.ALWAYS,
            "spark.local.dir": str(scratch),
            "spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={part}",
        }
        program = ["io.faro.e2e.Jobs", jobs_jar, scratch, *CASES]
        command = launch.submit_command(home, version, "faro-classes", conf, faro_jar, program)
        launch.drive(command, launch.environment_for(home, short_lived=True), scratch)
        if part.exists():
            part.rename(archive)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(home / "work", ignore_errors=True)
