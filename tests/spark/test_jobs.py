"""Spark end to end: real applications on a local-cluster, answers checked exactly.

An application runs the cases of a scenario (tests/spark/harness/scenarios/), in the order of the
tests, those that wait most of the time first. A test waits until its application has ended, and
looks at what that left behind: its answers, its end, the counters.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import quarantine
import spark_home
from harness import build, scenarios, verdict
from harness.applications import Application, Jars, Running

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "target" / "test-logs" / "spark"
JOBS = ROOT / "tests" / "spark" / "jobs"
# What is looked at beside the cases: the end of the application, the way that blocks took.
ENDS, FARO = "ends", "faro"
JOBS_OF_FARO = ROOT / "tests" / "spark" / "jobs-faro"


def chosen(options) -> list[Application]:
    if options.scenarios or options.full or options.smoke:
        known = spark_home.all_versions()
        versions = spark_home.versions_named(options.versions) if options.versions else known
        names = options.scenarios or (scenarios.SMOKE if options.smoke else [])
        pairs = scenarios.named(names, versions, options.full)
    else:
        # Who asks for versions or cases looks for them where he does not say.
        narrowed = options.versions or options.cases
        pairs = scenarios.applications(
            *(options.tier or (scenarios.TIERS[:2] if narrowed else scenarios.TIERS[:1]))
        )
        if options.versions:
            versions = spark_home.versions_named(options.versions)
            pairs = [pair for pair in pairs if pair[0] in versions]
    given = dict(setting.split("=", 1) for setting in options.conf)
    found = []
    for version, scenario in pairs:
        narrowed = scenario.only(options.cases) if options.cases else scenario
        if narrowed.cases and not (options.stock and scenario.faro_only):
            one = replace(narrowed, conf={**scenario.conf, **given})
            found.append(Application(version, one, LOGS / version.name / scenario.name))
    return sorted(found, key=lambda one: not one.scenario.waits)


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
    """The applications of the chosen tests, each with only the cases that tests look at."""
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
    narrowed = [narrow(application, cases[name]) for name, application in wanted.items()]
    applications = Running(narrowed, Jars(jobs_jar, faro_jar), options.at_once)
    yield applications
    for ended in applications.stop():
        if ended.name in failures:
            continue
        if ended.late_before:
            # Its first logs stay.
            request.config.flaky.append(f"{ended.name}: {ended.late_before}")
        if not options.keep_logs:
            shutil.rmtree(ended.logs, ignore_errors=True)


def narrow(application: Application, cases: set[str]) -> Application:
    """The application with only the cases that tests look at; with all of them where none does."""
    scenario = application.scenario
    narrowed = scenario.only(cases)
    return replace(application, scenario=narrowed if narrowed.cases else scenario)


@pytest.fixture(scope="session")
def failures() -> set[str]:
    """Names of the applications of which a test failed: their logs stay."""
    return set()


@pytest.fixture(scope="session")
def quarantined() -> set[str]:
    return {entry.case for entry in quarantine.entries()}


def test_spark(running, application, name, failures, quarantined, record_property):
    """One case has the right answer, or the application did what its scenario says."""
    ended = running.result(application.name)
    result = judged(ended, name)
    record_property("detail", result.detail)
    if not result.passed:
        failures.add(ended.name)
        said = f"{result.detail}\nlogs: {ended.logs.relative_to(ROOT)}"
        if f"{application.name}-{name}" in quarantined:
            pytest.skip(f"failed, in quarantine: {said}")
        pytest.fail(said, pytrace=False)


def judged(ended: Application, name: str) -> verdict.Result:
    if name == ENDS:
        return verdict.Result(name, not ended.problem, ended.problem or f"in {ended.seconds:.0f} s")
    if name == FARO and ended.outcome:
        return verdict.faro_result(ended.scenario, ended.outcome)
    results = ended.reported.get(name, [])
    missing = verdict.Result(name, False, f"did not report: {ended.problem}")
    return next((r for r in results if not r.passed), results[0] if results else missing)
