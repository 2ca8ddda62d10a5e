"""YARN, really: applications on two nodes, answers checked exactly, and the way their blocks took."""

from __future__ import annotations

from pathlib import Path

import pytest
import spark_home
from application import Submitted
from daemons import Cluster
from harness import build, verdict

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "target" / "test-logs" / "yarn"
JOBS = ROOT / "tests" / "spark" / "jobs"


@pytest.fixture(scope="session")
def jobs_jar():
    return build.java_jar("jobs", sorted(JOBS.rglob("*.java")))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("yarn") / "cluster", LOGS / "cluster")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def submit(cluster, version, mode, name, cases, conf, faro_jar, jobs_jar, tmp_path, jars="local"):
    spark = spark_home.versions_named([version])[0]
    home = spark_home.ensure(spark)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    program = ["io.faro.e2e.Jobs", jobs_jar, scratch, *cases]
    where = LOGS / f"{version}-{name}-{mode}"
    return Submitted(cluster, spark, home, name, mode, conf, faro_jar, program, where, jars)


def problems_of(run, cases):
    """Why the application is not what it should be, apart from Faro's counters."""
    problem = verdict.end_problem(run)
    wrong = [f"{r.name}: {r.detail}" for r in verdict.cases(run) if not r.passed]
    if len(verdict.cases(run)) != len(cases):
        wrong.append(f"{len(verdict.cases(run))} of {len(cases)} cases reported")
    return [*([problem] if problem else []), *wrong]


@pytest.mark.parametrize("version", ["4.3.0", "3.5.9"])
@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_mode(cluster, version, mode, faro_jar, jobs_jar, tmp_path, record_property):
    cases = ["groupByKey", "sqlJoin", "sqlAggregate"]
    conf = {"spark.faro.fallback": "never"}
    run = submit(
        cluster, version, mode, "mode", cases, conf, faro_jar, jobs_jar, tmp_path
    ).wait()
    problems = problems_of(run, cases)
    if not run.counted("remoteBlocks") or run.counted("fallbacks"):
        problems.append("not all blocks came through Faro")
    if len(run.summaries()) != 2:
        problems.append("not two summaries")
    record_property("detail", f"{run.counted('remoteBlocks')} blocks, {run.seconds:.0f} s")
    assert not problems, f"{problems}; {run.summaries()}"
