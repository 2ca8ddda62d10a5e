"""Each suite of the benchmarks starts, and its Java programs compile against the jar and the Spark
that they measure.

`make test` measures nothing, so a benchmark that no longer starts would be found only when somebody
wants a figure.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import spark_home

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
    run = TESTS / "bench" / "run"
    names = re.findall(r"^  (\S+) ", subprocess.check_output([run, "--help"], text=True), re.M)
    assert len(names) > 10
    for name in names:
        said = subprocess.check_output([run, name, "--help"], text=True)
        assert "show this help message" in said, name


def test_a_suite_that_fails_or_is_unknown_is_no_success():
    run = TESTS / "bench" / "run"
    assert subprocess.call([run, "ladder", "--no-such-option"], stderr=subprocess.DEVNULL) == 2
    assert subprocess.call([run, "no-such-suite"], stdout=subprocess.DEVNULL) == 2
