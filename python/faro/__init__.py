"""Faro's jar for PySpark.

import faro
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.config("spark.jars", faro.jar())
    .config("spark.shuffle.manager", "io.faro.spark.FaroShuffleManager")
    .getOrCreate()
)

`spark.jars` is enough on Spark 4. On Spark 3 executors need the jar when their JVM starts: set
`spark.driver.extraClassPath` and `spark.executor.extraClassPath` to `faro.jar()` instead, and
install the package at the same path on every host.
"""

from pathlib import Path

__all__ = ["jar"]


def jar() -> str:
    """The path of the jar that this package carries."""
    path = Path(__file__).resolve().parent / "faro-spark.jar"
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no file {path}: Faro's jar comes with the wheel faro-spark, which pip "
            "installs; it cannot be used from inside an archive"
        )
    return str(path)
