"""Spark end to end: real applications on a local-cluster, answers checked exactly.

An application runs the cases of a scenario (tests/spark/harness/scenarios.py); --at-once of them
run at a time, in the order of their tests. A test waits until its application has ended, and looks
at what that left behind.
"""

from __future__ import annotations

import shutil
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import spark_home
from harness import build, launch, scenarios, verdict

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "target" / "test-logs" / "spark"
JOBS = ROOT / "tests" / "spark" / "jobs"
JOBS_OF_FARO = ROOT / "tests" / "spark" / "jobs-faro"


@dataclass
class Application:
    """A scenario on one Spark version, before and after it ran."""

    version: spark_home.Version
    scenario: scenarios.Scenario
    outcome: launch.Outcome | None = None
    # Why there is no outcome.
    problem: str = ""
    reported: dict[str, list[verdict.Result]] = field(default_factory=dict)
    seconds: float = 0

    @property
    def name(self) -> str:
        return f"{self.version.name}-{self.scenario.name}"

    @property
    def logs(self) -> Path:
        return LOGS / self.version.name / self.scenario.name

    def run(self, jobs_jar: Path, faro_jar: Path | None) -> None:
        shutil.rmtree(self.logs, ignore_errors=True)
        started = time.monotonic()
        try:
            home = spark_home.ensure(self.version)
            self.outcome = launch.run(
                self.version, home, self.scenario, jobs_jar, faro_jar, self.logs
            )
            self.problem = verdict.end_problem(self.outcome)
            for result in verdict.cases(self.outcome):
                self.reported.setdefault(result.name, []).append(result)
        except RuntimeError as error:
            self.problem = str(error)
        self.seconds = time.monotonic() - started


def chosen(options) -> list[Application]:
    versions = options.versions or [version.name for version in spark_home.all_versions()]
    found = []
    for version in spark_home.versions_named(versions):
        depth = "full" if options.full else "smoke" if options.smoke else version.depth
        for scenario in scenarios.chosen(depth, options.scenarios, options.stock):
            cases = [c for c in scenario.cases if not options.cases or c in options.cases]
            if cases:
                found.append(Application(version, replace(scenario, cases=cases)))
    return found


def pytest_generate_tests(metafunc):
    applications = chosen(metafunc.config.option)
    if metafunc.function is test_case:
        pairs = [(one, case) for one in applications for case in one.scenario.names()]
        metafunc.parametrize(
            ("application", "case"),
            pairs,
            ids=[f"{one.name}-{case}" for one, case in pairs],
            indirect=["application"],
        )
    elif metafunc.function in (test_ends, test_faro):
        looked_at = [
            one
            for one in applications
            if metafunc.function is test_ends
            or (one.scenario.faro != scenarios.ANY and not metafunc.config.option.stock)
        ]
        metafunc.parametrize(
            "application",
            looked_at,
            ids=[one.name for one in looked_at],
            indirect=True,
        )


@pytest.fixture(scope="session")
def running(request, failures):
    """The applications of the chosen tests, each as something to wait for."""
    options = request.config.option
    faro_jar = None if options.stock else options.jar.resolve()
    sources = sorted(JOBS.rglob("*.java"))
    if faro_jar:
        sources += sorted(JOBS_OF_FARO.rglob("*.java"))
        jobs_jar = build.java_jar("jobs-faro", sources, [faro_jar])
    else:
        jobs_jar = build.java_jar("jobs", sources)
    wanted: dict[str, Application] = {}
    cases: dict[str, set[str]] = {}
    for item in request.session.items:
        parameters = item.callspec.params
        wanted.setdefault(parameters["application"].name, parameters["application"])
        cases.setdefault(parameters["application"].name, set()).add(parameters.get("case", ""))
    pool = ThreadPoolExecutor(options.at_once)
    futures: dict[str, Future[Application]] = {}
    for name, application in wanted.items():
        narrowed = narrow(application, cases[name] - {""})
        futures[name] = pool.submit(run, narrowed, jobs_jar, faro_jar)
    yield futures
    # After an interrupt some still wait or run.
    pool.shutdown(wait=False, cancel_futures=True)
    launch.stop_all()
    for name, application in wanted.items():
        if name not in failures and not options.keep_logs:
            shutil.rmtree(application.logs, ignore_errors=True)


def narrow(application: Application, cases: set[str]) -> Application:
    """The application with only the cases that tests look at; with all of them where none does."""
    scenario = application.scenario
    if cases and not scenario.bad_values:
        kept = [case for case in scenario.cases if case in cases]
        scenario = replace(scenario, cases=kept)
    return Application(application.version, scenario)


def run(application: Application, jobs_jar: Path, faro_jar: Path | None) -> Application:
    application.run(jobs_jar, faro_jar)
    return application


@pytest.fixture
def application(request, running):
    """An application that has ended."""
    return running[request.param.name].result()


@pytest.fixture(scope="session")
def failures() -> set[str]:
    """Names of the applications of which a test failed: their logs stay."""
    return set()


def judge(result: verdict.Result, application, failures, record_property) -> None:
    """Passes or fails the test as the result says."""
    record_property("detail", result.detail)
    if not result.passed:
        failures.add(application.name)
        logs = application.logs.relative_to(ROOT)
        pytest.fail(f"{result.detail}\nlogs: {logs}", pytrace=False)


def test_case(application, case, failures, record_property):
    """The case's answer is right."""
    results = application.reported.get(case, [])
    missing = verdict.Result(case, False, f"did not report: {application.problem}")
    bad = [result for result in results if not result.passed]
    judge((bad or results or [missing])[0], application, failures, record_property)


def test_ends(application, failures, record_property):
    """All cases reported, and the application ended by itself."""
    problem = application.problem
    detail = problem or f"in {application.seconds:.0f} s"
    judge(verdict.Result("ends", not problem, detail), application, failures, record_property)


def test_faro(application, failures, record_property):
    """Blocks came the way that the scenario says."""
    if application.outcome is None:
        result = verdict.Result("faro", False, application.problem)
    else:
        result = verdict.faro_result(application.scenario, application.outcome)
    judge(result, application, failures, record_property)
