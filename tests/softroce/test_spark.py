"""Spark jobs over RDMA between two hosts of a guest, and how they end when RDMA fails.

The jobs check their own answers; Faro's counters and the devices' own show the way that blocks
took. All logs stay: target/test-logs/softroce/spark/SCENARIO.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import attempts
import guard
import processors
import pytest
import spark_home
from guests import SKIPPED, no_guest
from harness import build, class_archive, comet, launch, verdict
from harness.scenarios import COMET, COMET_MANAGER, COMET_VERSION, PLUGIN
from spark_scenarios import SCENARIOS, Scenario

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LOGS = ROOT / "target" / "test-logs" / "softroce" / "spark"
JAR = ROOT / "target" / "tests" / "faro-spark.jar"
RESEARCH_JAR = ROOT / "target" / "tests" / "faro-spark-research.jar"
# Java takes a jar with this file for one with the modes for comparison (FaroKeys).
RESEARCH = "META-INF/faro-research"
VERSION = "4.3.0"
RDMA_PACKET = 4096
# Exit code of `tests/softroce/run`.
LATE = 124
# Beside the cases and the counters of a scenario.
ENDS, SAYS, OVER_VERBS, DEVICES = "ends", "says why", "all over verbs", "devices agree"


@dataclass
class Ended:
    """A scenario whose guest has ended: its results by name, as (passed, detail)."""

    results: dict[str, list[tuple[bool, str]]] = field(default_factory=dict)
    # Why it was ended before its end, unless a result was wrong until then.
    late: str = ""

    def add(self, name: str, passed: bool, detail: str) -> None:
        self.results.setdefault(name, []).append((passed, detail))


def names(scenario: Scenario) -> list[str]:
    """What is looked at in a scenario."""
    found = [*dict.fromkeys(scenario.cases), ENDS]
    if scenario.says:
        found.append(SAYS)
    found += scenario.counts
    if scenario.only_verbs:
        found += [OVER_VERBS, DEVICES]
    return found


def chosen(options) -> list[Scenario]:
    known = {scenario.name: scenario for scenario in SCENARIOS}
    unknown = [name for name in options.guests if name not in known]
    if unknown:
        raise pytest.UsageError(f"no scenario {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in options.guests] or [
        scenario for scenario in SCENARIOS if scenario.quick or not options.quick
    ]


def pytest_generate_tests(metafunc):
    pairs = [(one, name) for one in chosen(metafunc.config.option) for name in names(one)]
    ids = [f"{scenario.name}-{name}" for scenario, name in pairs]
    metafunc.parametrize(("scenario", "name"), pairs, ids=ids)


@functools.cache
def research_jar() -> Path:
    """The jar that does not refuse the modes for comparison; the library of the tests has them."""
    return build.other_version(JAR, RESEARCH_JAR, {RESEARCH: b""})


@pytest.fixture(scope="session")
def ended():
    """A function that runs a scenario in a guest, once."""
    if not JAR.is_file():
        pytest.exit(f"{JAR} is missing: tests/setup/build-jar {JAR} --tests", returncode=2)
    jobs = build.java_jar("jobs", sorted((ROOT / "tests" / "spark" / "jobs").rglob("*.java")))
    known: dict[str, Ended] = {}

    def once(scenario: Scenario) -> Ended:
        if scenario.name not in known:
            name = COMET_VERSION if scenario.comet else VERSION
            version = spark_home.versions_named([name])[0]
            jar = research_jar() if scenario.research else JAR
            # Five JVMs load the same classes, on a slow processor.
            archive = None if scenario.comet else class_archive.ensure(version, jar, jobs)
            home = spark_home.ensure(version)
            known[scenario.name] = run(scenario, home, jobs, jar, archive)
            late = known[scenario.name].late
            if late:
                # With nothing beside it. What fails then has failed.
                again = run(scenario, home, jobs, jar, archive, processors.ALL)
                again.results[ENDS] += [(False, again.late)] if again.late else []
                known[scenario.name] = again
                if not again.late:
                    print(f"\nflaky: spark {scenario.name}: {late}", flush=True)
        return known[scenario.name]

    return once


def test_spark(ended, scenario, name, record_property):
    results = ended(scenario).results
    passed, detail = min(results.get(name, [(False, f"no result; {results[ENDS][0][1]}")]))
    record_property("detail", detail)
    if not passed:
        logs = (LOGS / scenario.name).relative_to(ROOT)
        pytest.fail(f"{detail}\nlogs: {logs}", pytrace=False)


@contextlib.contextmanager
def enough_mappings(count):
    """Raises the host's limit meanwhile; without the right to do so it says so."""
    limit = Path("/proc/sys/vm/max_map_count")
    before = int(limit.read_text())
    try:
        if before < count:
            limit.write_text(str(count))
    except OSError as error:
        print(f"  (vm.max_map_count is {before}, {count} would be needed: {error})")
    try:
        yield
    finally:
        if before < count:
            with contextlib.suppress(OSError):
                limit.write_text(str(before))


def run(
    scenario: Scenario,
    home: Path,
    jobs: Path,
    jar: Path,
    archive: Path | None,
    halves: int = processors.ONE,
) -> Ended:
    logs = LOGS / scenario.name
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    conf, jars = {**scenario.conf}, ""
    if scenario.comet:
        jars = f"{comet.jar(COMET_VERSION)},"
        on_class_path = f"{comet.jar(COMET_VERSION)}:{jar}"
        conf |= {
            **COMET,
            "spark.memory.offHeap.size": "256m",
            "spark.plugins": f"{COMET['spark.plugins']},{PLUGIN}",
            "spark.shuffle.manager": COMET_MANAGER,
            "spark.driver.extraClassPath": on_class_path,
            "spark.executor.extraClassPath": on_class_path,
        }
    environment = {
        **os.environ,
        "JAVA_TOOL_OPTIONS": launch.short_lived_options(archive),
        "SPARK_HOME": str(home),
        "JOBS": str(jobs),
        "FARO_JAR": str(jar),
        "JARS": jars,
        "CONF": " ".join(f"--conf {key}={value}" for key, value in conf.items()),
        "AS": scenario.run_as,
        "PREPARE": scenario.prepare,
        "HOOK": scenario.hook,
    }
    machine = ["--hosts", "2", "--cpus", "1", "--memory", "6G", "--timeout", str(guard.CEILING)]
    command = [HERE / "run", *machine, "--keep", logs, *scenario.guest, "--"]
    log = logs / "guest.log"
    with enough_mappings(scenario.mappings):
        guest = attempts.run(
            [*command, "cluster", logs, *scenario.cases], log, halves, env=environment
        )
    said = read(log)
    if guest.code == SKIPPED:
        no_guest(said)
    ended = judge(scenario, logs)
    fault = fault_in(logs)
    wrong = [
        name for name in scenario.cases if not all(ok for ok, _ in ended.results.get(name, []))
    ]
    if not wrong and not fault and not summed(logs, "crcErrors"):
        ended.late = guest.late or ("took too long in its guest" if guest.code == LATE else "")
    missing = len(scenario.cases) - sum(len(ended.results.get(c, [])) for c in {*scenario.cases})
    words = said.strip().splitlines()[-3:] if guest.code else []
    ended.add(
        ENDS,
        not guest.code and not missing and not fault,
        f"{fault and f'{fault}; '}exit code {guest.code}, {missing} cases did not report, "
        f"{guest.seconds:.0f} s {' '.join(words)}".strip(),
    )
    return ended


def read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def fault_in(logs: Path) -> str:
    """A panic or a crash of native code, which Spark may have made good; or nothing."""
    names = ("driver.out", "driver.log", *(path.name for path in sorted(logs.glob("worker-*.log"))))
    executors = {
        str(log.parent.relative_to(logs)): read(log)
        for log in sorted(logs.glob("work/*/*/*/stderr"))
    }
    found = launch.Outcome(
        driver_log="\n".join(read(logs / name) for name in names), executor_logs=executors
    )
    return verdict.panicked(found) or verdict.crashed(found)


def judge(scenario: Scenario, logs: Path) -> Ended:
    ended = Ended()
    for line in read(logs / "driver.out").splitlines():
        if line.startswith("CASE "):
            _, name, state, *rest = line.split(" ", 3)
            ended.add(name, state == "OK", " ".join(rest) + (" ms" if state == "OK" else ""))
    executors = [read(log) for log in sorted(logs.glob("work/*/*/*/stderr"))]
    if scenario.says:
        said = [len(re.findall(scenario.says, log)) for log in executors]
        good = any(said) and max(said) <= scenario.often
        ended.add(SAYS, good, f"{scenario.says!r}: {said} times")
    for name in scenario.counts:
        total = summed(logs, name)
        ended.add(name, total > 0, f"{total} over all executors")
    if scenario.only_verbs:
        judge_the_way(ended, logs)
    return ended


def summed(logs: Path, name: str) -> int:
    """Of the metrics that the jobs printed, over all executors: summary lines can be cut off, as
    Spark's workers stop reading an executor's output before they end it."""
    pattern = rf"^COUNTERS .*?[{{ ]{re.escape(name)}=([\d.E]+)"
    return sum(int(float(n)) for n in re.findall(pattern, read(logs / "driver.out"), re.M))


def judge_the_way(ended: Ended, logs: Path) -> None:
    """All remote bytes came over verbs, by Faro's counters and by the devices'."""
    read_bytes, served = (summed(logs, f"{what}.verbs") for what in ("remoteBytes", "servedBytes"))
    elsewhere = ("remoteBytes.tcp", "remoteBytes.shm", "fallbacks", "crcErrors")
    others = sum(summed(logs, name) for name in elsewhere)
    ended.add(
        OVER_VERBS,
        read_bytes == served > 0 and others == 0,
        f"{read_bytes} bytes read, {served} served over verbs, "
        f"{others} otherwise, fallen back or corrupt",
    )
    before, after = (
        dict(line.split("=", 1) for line in read(logs / name).splitlines())
        for name in ("before", "after")
    )
    counted = {key: int(value or 0) - int(before.get(key) or 0) for key, value in after.items()}
    sent, received = (
        sum(counted.get(f"{device}.{what}_pkts", 0) for device in ("rxe1", "rxe2"))
        for what in ("sent", "rcvd")
    )
    # Every byte was in a packet, and the packets were the devices'.
    agrees = sent * RDMA_PACKET >= served and received * RDMA_PACKET >= served
    ended.add(DEVICES, agrees, f"{sent} packets sent, {received} received, for {served} bytes")
