"""The sides of the Spark measurements, with the settings, jars and processes that they need."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import daemons
from harness import comet, launch, scenarios

# The newest that there is a Comet for.
COMET_SPARK = scenarios.COMET_VERSION


@dataclass
class Side:
    conf: dict[str, str] = field(default_factory=dict)
    # The jars that the side needs beside that of the workloads.
    jars: Callable[[], list[Path]] = list
    # The variable that names the folder of an installation; without it the side is left out.
    needs_home: str = ""
    # Starts the side's daemons. Returns their processes, and their addresses as settings.
    daemons: daemons.Start | None = None

    @property
    def faro(self) -> bool:
        return any("io.faro.spark" in value for value in self.conf.values())

    @property
    def home(self) -> Path | None:
        found = os.environ.get(self.needs_home)
        return Path(found) if found else None


FARO = {"spark.shuffle.manager": launch.MANAGER, "spark.faro.fallback": "never"}
COMET = {
    **scenarios.COMET,
    "spark.shuffle.manager": scenarios.COMET_MANAGER,
    # Its row writer takes a page of up to 64 MiB for each partition, most of it untouched. With 1
    # GB and 40 partitions it spills after each row, and S takes four minutes.
    "spark.memory.offHeap.size": "6g",
}
BEHIND_COMET = {
    **COMET,
    "spark.plugins": f"{COMET['spark.plugins']},{scenarios.PLUGIN}",
    "spark.faro.fallback": "never",
}
CELEBORN = {
    "spark.shuffle.manager": "org.apache.spark.shuffle.celeborn.SparkShuffleManager",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
}
# A push waits 50 ms if 32 pushes are in flight, unless the limit is higher.
CELEBORN_TUNED = {**CELEBORN, "spark.celeborn.client.push.maxReqsInFlight.perWorker": "1024"}
UNIFFLE = {
    "spark.shuffle.manager": "org.apache.spark.shuffle.RssShuffleManager",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.rss.storage.type": "MEMORY_LOCALFILE",
}


def all_sides(faro_jar: Path, spark: str) -> dict[str, Side]:
    """The sides on a version of Spark, by name."""

    def faro():
        return [faro_jar]

    def comets():
        return [comet.jar(spark)]

    def both():
        return [comet.jar(spark), faro_jar]

    return {
        "stock": Side(),
        "stock-service": Side(daemons=daemons.sparks),
        "faro-tcp": Side({**FARO, "spark.faro.fabric": "tcp"}, faro),
        "faro-tcp-service": Side(
            {**FARO, "spark.faro.fabric": "tcp"}, faro, daemons=daemons.faro(replicas=0)
        ),
        "faro-tcp-replicas": Side(
            {**FARO, "spark.faro.fabric": "tcp"}, faro, daemons=daemons.faro(replicas=1)
        ),
        "faro-tcp-lz4": Side(
            {**FARO, "spark.faro.fabric": "tcp", "spark.faro.rowBlocks": "false"}, faro
        ),
        "faro-spark": Side(
            {**FARO, "spark.faro.fabric": "auto", "spark.faro.reader": "spark"}, faro
        ),
        "faro-auto": Side({**FARO, "spark.faro.fabric": "auto"}, faro),
        "faro-spark-sort": Side(
            {**FARO, "spark.faro.fabric": "auto", "spark.faro.sort": "false"}, faro
        ),
        "faro-lz4": Side(
            {**FARO, "spark.faro.fabric": "auto", "spark.faro.rowBlocks": "false"}, faro
        ),
        "comet": Side(COMET, comets),
        "faro-comet": Side(BEHIND_COMET, both),
        "celeborn": celeborn(CELEBORN, spark),
        "celeborn-tuned": celeborn(CELEBORN_TUNED, spark),
        "uniffle": Side(
            UNIFFLE,
            lambda: jars_of("UNIFFLE_HOME", f"jars/client/spark{spark[0]}/**/*.jar"),
            needs_home="UNIFFLE_HOME",
            daemons=daemons.uniffle,
        ),
    }


def celeborn(conf: dict[str, str], spark: str) -> Side:
    return Side(
        conf,
        lambda: jars_of("CELEBORN_HOME", f"spark/celeborn-client-spark-{spark[0]}-*.jar"),
        needs_home="CELEBORN_HOME",
        daemons=daemons.celeborn,
    )


def jars_of(home: str, pattern: str) -> list[Path]:
    found = sorted(Path(os.environ[home]).glob(pattern))
    if not found:
        raise RuntimeError(f"{home}={os.environ[home]} has no {pattern}")
    return found
