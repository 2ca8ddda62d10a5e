"""Each suite of the benchmarks starts, its Java programs compile against the jar and the Spark that
they measure, and the one writer of tables writes them.

`make test` measures nothing, so a benchmark that no longer starts would be found only when somebody
wants a figure.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import spark_home
from programs import loaded

TESTS = Path(__file__).resolve().parents[1]
JAR = TESTS.parent / "target" / "tests" / "faro-spark.jar"
SPARK = "4.3.0"


def test_the_programs_of_the_benchmarks_compile(tmp_path):
    if not JAR.exists():
        pytest.fail(f"there is no {JAR}: run make target/tests/faro-spark.jar")
    home = spark_home.ensure(spark_home.versions_named([SPARK])[0])
    sources = [*(TESTS / "bench").rglob("*.java"), *(TESTS / "tpcds").glob("*.java")]
    built = subprocess.run(
        [
            *["javac", "-nowarn", "-Xlint:none", "-proc:none"],
            *["-d", str(tmp_path), "-cp", f"{home}/jars/*:{JAR}"],
            *["-sourcepath", str(TESTS / "spark" / "jobs")],
            *map(str, sorted(sources)),
        ],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert built.returncode == 0, built.stdout


def test_each_suite_starts():
    bench = loaded("bench/run")
    for name, suite in bench.suites().items():
        assert bench.arguments(name, suite, ["--report"]).report
        assert callable(suite.tables) or all(
            table.figures or table.medians for table in suite.tables
        )


def test_a_suite_that_fails_or_is_unknown_is_no_success():
    run = TESTS / "bench" / "run"
    assert subprocess.call([run, "ladder", "--no-such-option"], stderr=subprocess.DEVNULL) == 2
    assert subprocess.call([run, "no-such-suite"], stdout=subprocess.DEVNULL) == 2


def test_a_table_has_medians_spreads_and_ratios():
    results = loaded("bench/results.py")
    rounds = [("stock Spark", 4.0), ("stock Spark", 2.0), ("Faro", 1.5), ("Faro", 1.5)]
    records = [{"job": "A", "side": side, "job s": seconds} for side, seconds in rounds]
    table = results.Table("By job", ["job", "side"], ["job s"], ratios={"job / stock": "job s"})
    assert results._text(table, records).splitlines()[-2:] == [
        "| A | stock Spark | 3 (2–4) | – |",
        "| A | Faro | 1.50 | 0.50 |",
    ]
    table = results.Table("", ["job"], ["job s"], across="side")
    assert results._text(table, records).splitlines()[-2:] == [
        "| A | 3 (2–4) | 1.50 | 0.50 |",
        "| **sum** | 3 (2–4) | 1.50 | 0.50 |",
    ]
