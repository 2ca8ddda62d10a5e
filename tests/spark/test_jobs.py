"""Spark end to end: real applications on a local-cluster, answers checked exactly.

An application runs the cases of a scenario (tests/spark/harness/scenarios/); --at-once of them
run at a time, in the order of their tests, and one more of those that mostly wait. A test waits
until its application has ended, and looks at what that left behind: its answers, its end, the
counters.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Thread

import pytest
import spark_home
from harness import build, class_archive, launch, scenarios, verdict

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "target" / "test-logs" / "spark"
JOBS = ROOT / "tests" / "spark" / "jobs"
# What is looked at beside the cases: the end of the application, the way that blocks took.
ENDS, FARO = "ends", "faro"
# From so many applications of a version on, an archive of its classes is worth making.
WORTH_AN_ARCHIVE = 5
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

    def run(self, jobs_jar: Path, faro_jar: Path | None, with_archive: bool) -> None:
        shutil.rmtree(self.logs, ignore_errors=True)
        started = time.monotonic()
        try:
            home = spark_home.ensure(self.version)
            archive = None
            if with_archive and not self.scenario.jvm_defaults:
                archive = class_archive.ensure(self.version, faro_jar, jobs_jar)
            self.outcome = launch.run(
                self.version, home, self.scenario, jobs_jar, faro_jar, self.logs, archive
            )
            self.problem = verdict.end_problem(self.outcome)
            for result in verdict.cases(self.outcome):
                self.reported.setdefault(result.name, []).append(result)
        except (RuntimeError, OSError) as error:
            self.problem = str(error)
        self.seconds = time.monotonic() - started


def chosen(options) -> list[Application]:
    versions = options.versions or [version.name for version in spark_home.all_versions()]
    given = dict(setting.split("=", 1) for setting in options.conf)
    found = []
    for version in spark_home.versions_named(versions):
        depth = "everything" if options.full else "smoke" if options.smoke else version.depth
        for scenario in scenarios.chosen(version.name, depth, options.scenarios, options.stock):
            cases = [c for c in scenario.cases if not options.cases or c in options.cases]
            if cases:
                conf = {**scenario.conf, **given}
                found.append(Application(version, replace(scenario, cases=cases, conf=conf)))
    return found


def names(application: Application, stock: bool) -> list[str]:
    """What is looked at in an application."""
    found = [*application.scenario.names(), ENDS]
    if application.scenario.checks_faro() and not stock:
        found.append(FARO)
    return found


def pytest_generate_tests(metafunc):
    options = metafunc.config.option
    pairs = [(one, name) for one in chosen(options) for name in names(one, options.stock)]
    ids = [f"{application.name}-{name}" for application, name in pairs]
    metafunc.parametrize(("application", "name"), pairs, ids=ids)


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
        cases.setdefault(parameters["application"].name, set()).add(parameters["name"])
    many = Counter(application.version.name for application in wanted.values())
    versions = dict.fromkeys(a.version for a in wanted.values())
    Thread(target=lambda: [*map(spark_home.ensure, versions)], daemon=True).start()
    pool = ThreadPoolExecutor(options.at_once)
    # What waits most of the time takes no turn of those that work.
    waiting = ThreadPoolExecutor(1) if options.at_once > 1 else pool
    futures: dict[str, Future[Application]] = {}
    for name, application in wanted.items():
        narrowed = narrow(application, cases[name])
        with_archive = many[application.version.name] >= WORTH_AN_ARCHIVE
        turn = waiting if application.scenario.waits else pool
        futures[name] = turn.submit(run, narrowed, jobs_jar, faro_jar, with_archive)
    yield futures
    # After an interrupt some still wait or run.
    for turns in (pool, waiting):
        turns.shutdown(wait=False, cancel_futures=True)
    launch.stop_all()
    # Those that still run are about to write their logs.
    ended = [wanted[name] for name, future in futures.items() if future.done()]
    for application in ended:
        if application.name not in failures and not options.keep_logs:
            shutil.rmtree(application.logs, ignore_errors=True)


def narrow(application: Application, cases: set[str]) -> Application:
    """The application with only the cases that tests look at; with all of them where none does."""
    scenario = application.scenario
    kept = [case for case in scenario.cases if case in cases]
    return Application(application.version, replace(scenario, cases=kept) if kept else scenario)


def run(
    application: Application, jobs_jar: Path, faro_jar: Path | None, with_archive: bool
) -> Application:
    application.run(jobs_jar, faro_jar, with_archive)
    return application


@pytest.fixture(scope="session")
def failures() -> set[str]:
    """Names of the applications of which a test failed: their logs stay."""
    return set()


def test_spark(running, application, name, failures, record_property):
    """One case has the right answer, or the application did what its scenario says."""
    ended = running[application.name].result()
    result = judged(ended, name)
    record_property("detail", result.detail)
    if not result.passed:
        failures.add(ended.name)
        pytest.fail(f"{result.detail}\nlogs: {ended.logs.relative_to(ROOT)}", pytrace=False)


def judged(ended: Application, name: str) -> verdict.Result:
    if name == ENDS:
        return verdict.Result(name, not ended.problem, ended.problem or f"in {ended.seconds:.0f} s")
    if name == FARO and ended.outcome:
        return verdict.faro_result(ended.scenario, ended.outcome)
    results = ended.reported.get(name, [])
    missing = verdict.Result(name, False, f"did not report: {ended.problem}")
    return next((r for r in results if not r.passed), results[0] if results else missing)
