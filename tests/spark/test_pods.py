"""Faro in containers as Kubernetes makes them: what a pod takes away, and what is left for Faro.

Executors run in namespaces of their own (harness/pods), with the restrictions of a pod all at once:
user 185, a read-only root file system, /tmp noexec, a small /dev/shm or none, containerd's seccomp
list, few file descriptors, little locked memory, a network of its own. The jobs are real ones, and
their answers exact.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import spark_home
from harness import build, verdict
from harness.pods import application, cases

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "target" / "test-logs" / "spark-pods"
JOBS = [ROOT / "tests" / "spark" / name for name in ("jobs", "jobs-faro")]
VERSIONS = ["4.3.0"]


def pytest_generate_tests(metafunc):
    options = metafunc.config.option
    versions = options.versions or VERSIONS
    chosen = [case for case in cases.CASES if options.all or case.short]
    if options.scenarios:
        chosen = [case for case in cases.CASES if case.name in options.scenarios]
    pairs = [(version, case) for version in versions for case in chosen]
    ids = [f"{version}-{case.name}" for version, case in pairs]
    metafunc.parametrize(("version", "case"), pairs, ids=ids)


@pytest.fixture(scope="session")
def jobs_jar(faro_jar):
    sources = sorted(source for directory in JOBS for source in directory.rglob("*.java"))
    return build.java_jar("jobs-faro", sources, [faro_jar])


def test_pods(version, case, jobs_jar, faro_jar, pytestconfig, record_property):
    if why := application.why_not():
        pytest.skip(why)
    chosen = spark_home.versions_named([version])[0]
    given = dict(setting.split("=", 1) for setting in pytestconfig.option.conf)
    scenario = replace(case.scenario, conf={**case.scenario.conf, **given})
    case = replace(case, scenario=scenario)
    logs = LOGS / f"{version}-{case.name}"
    shutil.rmtree(logs, ignore_errors=True)
    home = spark_home.ensure(chosen)
    outcome = application.run(home, case, jobs_jar, faro_jar, logs)
    results = verdict.cases(outcome)
    if case.scenario.checks_faro():
        results.append(verdict.faro_result(case.scenario, outcome))
    problems = [f"{one.name}: {one.detail}" for one in results if not one.passed]
    if end := verdict.end_problem(outcome):
        problems.append(end)
    for executor in range(len(case.pods)):
        log = outcome.executor_logs.get(str(executor), "")
        problems += line_problems(case, executor, log)
    said = "; ".join(one.detail for one in results if one.name.startswith("faro-"))
    record_property("detail", f"{outcome.seconds:.0f} s; {said}")
    if problems:
        pytest.fail("; ".join(problems) + f"; see {logs}", pytrace=False)
    if not pytestconfig.option.keep_logs:
        shutil.rmtree(logs, ignore_errors=True)


def line_problems(case, executor, log):
    """Lines of an executor's log that are missing, are there more than once, or should not be."""
    lines = log.splitlines()
    for pattern in case.says.get(executor, ()):
        found = [line for line in lines if re.search(pattern, line)]
        if len(found) != 1:
            yield f"executor {executor} logged {len(found)} times: {pattern}"
    for pattern in (*case.never_says, *case.never_said_by.get(executor, ())):
        for line in [line for line in lines if re.search(pattern, line)][:1]:
            yield f"executor {executor} logged: {line[:300]}"
