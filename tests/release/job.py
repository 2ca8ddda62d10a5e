"""A PySpark job that shuffles: a repartition, an aggregate and a join. Writes its answers, and
what Faro counted in each executor, to a file.

usage: job.py [--faro] [--jar FILE] [--conf KEY=VALUE]... FILE
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pyspark.sql import SparkSession


def session(options: argparse.Namespace) -> SparkSession:
    builder = SparkSession.builder
    for setting in options.conf:
        builder = builder.config(*setting.split("=", 1))
    if options.faro:
        # The lines of README, with the package that pip installed.
        import faro  # noqa: PLC0415

        jars = ",".join([faro.jar(), *options.jar])
        builder = builder.config("spark.jars", jars).config(
            "spark.shuffle.manager", "io.faro.spark.FaroShuffleManager"
        )
    return builder.getOrCreate()


def answers(spark: SparkSession) -> dict[str, list]:
    rows = spark.range(0, 200_000, 1, 8).selectExpr("id", "id % 97 k", "concat('t', id) t")
    spread = rows.repartition(12)
    grouped = spread.groupBy("k").agg({"id": "sum", "t": "max"}).orderBy("k")
    names = spark.range(0, 97).selectExpr("id k", "concat('name', id) name").repartition(5, "k")
    joined = spread.hint("merge").join(names, "k").where("id % 1009 = 0").orderBy("id")
    return {
        "grouped": [list(row) for row in grouped.collect()],
        "joined": [list(row) for row in joined.select("id", "name").collect()],
    }


def counters(spark: SparkSession) -> dict[str, dict[str, float]]:
    """They are asked: an executor that ends is killed soon, maybe before it wrote its summary."""
    java = spark.sparkContext._jvm.io.faro.e2e.FaroCounters
    found = java.ofExecutors(spark.sparkContext._jsc)
    return {executor: dict(found[executor]) for executor in found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faro", action="store_true", help="with the installed package")
    parser.add_argument("--jar", action="append", default=[], help="one beside Faro's")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    spark = session(options)
    result = {"answers": answers(spark), "counters": counters(spark)}
    options.file.write_text(json.dumps(result))
    spark.stop()


main()
