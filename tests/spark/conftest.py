"""What the Spark suites have in common: their options, Faro's jar, the compiled jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.scenarios import TIERS

ROOT = Path(__file__).resolve().parents[2]
# Of the tests: for this machine only, with a library that can inject faults.
JAR = ROOT / "target" / "tests" / "faro-spark.jar"


def pytest_addoption(parser):
    add = parser.getgroup("faro", "Spark with Faro").addoption
    add("--versions", nargs="+", metavar="V", help="names in tests/setup/spark-versions (all)")
    add("--jar", type=Path, default=JAR)
    add("--conf", action="append", metavar="K=V", default=[], help="a setting of Faro's side")
    # Of tests/spark/run only.
    add("--tier", nargs="+", metavar="T", choices=TIERS, help=f"{', '.join(TIERS)} (test)")
    add("--full", action="store_true", help="every scenario on every version")
    add("--smoke", action="store_true", help="one scenario of each kind, on every version")
    add("--scenarios", nargs="+", metavar="S", default=[])
    add("--cases", nargs="+", metavar="C", default=[], help="of the chosen scenarios")
    add("--stock", action="store_true", help="without Faro: Spark's own shuffle")
    add("--at-once", type=int, metavar="N", help="applications at a time, at most")
    add("--keep-logs", action="store_true", help="also the logs of what passed")
    # Of tests/spark/tpcds only.
    add("--all", action="store_true", help="all queries, with two kinds of settings")
    add("--scale", metavar="N", help="factor of the tables (0.1; 1 with --all)")


def pytest_configure(config):
    # Applications that were late and right when they ran once more.
    config.flaky = []
    if not config.option.stock and not config.option.jar.is_file():
        raise pytest.UsageError(
            f"{config.option.jar} is missing: run 'make {JAR.relative_to(ROOT)}', or pass --jar"
        )


@pytest.fixture(scope="session")
def faro_jar(pytestconfig) -> Path:
    return pytestconfig.option.jar.resolve()


def pytest_terminal_summary(terminalreporter, config):
    for line in config.flaky:
        terminalreporter.line(f"flaky: {line}")
