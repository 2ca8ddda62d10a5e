"""The program of scenarios in Python: runs the named cases in one application and reports as
io.faro.e2e.Jobs does."""

import sys
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf


def udf_ends_early(spark, jvm):
    """Python operators of Spark 3 are fed by a thread that their task does not wait for."""
    rounds = int(spark.conf.get("spark.e2e.rounds", "3"))
    words = DataFrame(jvm.RowLifeCases.words(spark._jsparkSession), spark)
    length = udf(lambda text: str(len(text)), "string")
    fed = words.select("id", length("t").alias("l"))
    jvm.RowLifeCases.endsEarly(spark.sparkContext._jsc, fed._jdf, rounds)


def udf_answers(spark, _):
    reverse = udf(lambda text: text[::-1], "string")
    rows = spark.range(0, 20_000, 1, 4).selectExpr("id", "concat('t', id) t").repartition(8)
    wrong = rows.select("t", reverse("t").alias("r")).where("r != reverse(t)").count()
    if wrong:
        raise AssertionError(f"{wrong} rows are wrong")


CASES = {"udfEndsEarly": udf_ends_early, "udfAnswers": udf_answers}


def main():
    _, _, *names = sys.argv
    spark = SparkSession.builder.getOrCreate()
    jvm = spark.sparkContext._jvm.io.faro.e2e
    jvm.Marks.begin(spark.sparkContext._jsc.sc())
    failed = 0
    for name in names:
        print(f"MARK case {name}", flush=True)
        started = time.monotonic()
        try:
            CASES[name](spark, jvm)
            print(f"CASE {name} OK {1000 * (time.monotonic() - started):.0f}", flush=True)
        except Exception as error:  # The harness reports it.
            failed += 1
            why = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            print(f"CASE {name} FAILED {why}", flush=True)
    for executor, counters in jvm.FaroCounters.ofExecutors(spark.sparkContext._jsc).items():
        values = " ".join(f"{name}={value}" for name, value in counters.items())
        print(f"COUNTERS {executor} {values}", flush=True)
    spark.stop()
    print("JOBS DONE", flush=True)
    sys.exit(1 if failed else 0)


main()
