"""A PySpark job that shuffles: a repartition, an aggregate and a join. Its answers go to a file.

usage: job.py [--faro] [--conf KEY=VALUE]... FILE
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

        builder = builder.config("spark.jars", faro.jar()).config(
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faro", action="store_true", help="with the installed package")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    spark = session(options)
    options.file.write_text(json.dumps(answers(spark)))
    spark.stop()


main()
