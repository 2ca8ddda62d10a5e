#!/usr/bin/env python3
"""Puts YARN's daemons and Spark's shuffle service for them into the cache, and prints the folder.

The folder has `yarn/`, the jars of ResourceManager and NodeManager, and `service/`, the jar of the
service alone: what it needs beside it is in the jars of a Spark.
"""

import shutil
import tempfile
import threading
from pathlib import Path

import spark_home

# The Hadoop that Spark 4.3.0 has the client of; it runs on Java 17.
HADOOP = "3.5.0"
# The newest spark-network-yarn on Maven Central; those of other releases were not published.
SERVICE = "3.5.5"

_FETCHING = threading.Lock()

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.faro.setup</groupId><artifactId>hadoop-home</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY = """
    <dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>
      <version>{version}</version></dependency>"""
PARTS = {
    "yarn": [
        ("org.apache.hadoop", "hadoop-yarn-server-resourcemanager", HADOOP),
        ("org.apache.hadoop", "hadoop-yarn-server-nodemanager", HADOOP),
        # The ResourceManager's web server does not start without it.
        ("org.apache.hadoop", "hadoop-yarn-server-timelineservice", HADOOP),
    ],
    "service": [("org.apache.spark", "spark-network-yarn_2.12", SERVICE)],
}


def ensure():
    """Fetched once, whatever number of threads asks."""
    place = spark_home.cache_root() / "hadoop" / f"{HADOOP}-spark-{SERVICE}"
    with _FETCHING:
        return place if place.is_dir() else fetch(place)


def fetch(place):
    spark_home.say(f"  Hadoop {HADOOP}: fetching (about 90 MB, from maven) ...")
    place.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{HADOOP}.", dir=place.parent))
    try:
        for name, artifacts in PARTS.items():
            resolve(artifacts, part, part / "home" / name, transitive=name == "yarn")
        try:
            (part / "home").rename(place)
        except OSError:
            # Another process was first; its folder is as good as this one.
            if not place.is_dir():
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return place


def resolve(artifacts, scratch, to, transitive):
    pom = scratch / "pom.xml"
    dependencies = "".join(DEPENDENCY.format(group=g, name=n, version=v) for g, n, v in artifacts)
    pom.write_text(POM.format(dependencies=dependencies))
    spark_home.run(
        [
            *("mvn", "-q", "-B", "-f", pom, spark_home.COPY_DEPENDENCIES),
            "-DincludeScope=runtime",
            f"-DexcludeTransitive={str(not transitive).lower()}",
            f"-DoutputDirectory={to}",
        ]
    )


if __name__ == "__main__":
    print(ensure())
