"""The Faro tab end to end: a real application whose own page shows what its executors counted, then
the history server, which must show the same from the event log alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest
import spark_home
from harness import build, class_archive, launch

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "target" / "test-logs" / "spark-ui"
# The oldest servlet API and Scala that Faro's page meets, and the newest.
VERSIONS = ["3.5.9", "4.3.0"]
# There Faro is a plug-in, behind Spark's own shuffle manager.
BEHIND = {"3.5.9": "sort"}
# There map outputs are kept by a `faro serve`.
WITH_SERVICE = {"4.3.0"}
SERVICE = re.compile(r'<tr data-service="[^"]+" data-outputs="[1-9]\d*" data-blocks="[1-9]\d*">')
FABRICS = ("verbs", "shm", "tcp")
PROMETHEUS = "spark.metrics.conf.*.sink.prometheusServlet"


def fetch(address):
    """The text of a page; None while there is none."""
    try:
        with urllib.request.urlopen(address, timeout=10) as page:
            return page.read().decode()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None


def awaited(what, seconds, look, alive):
    """What look() returns, once it returns something; alive() says whether waiting has a point."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and alive():
        found = look()
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {seconds} s")


def rows(page):
    found = re.findall(r'<tr data-executor="([^"]*)" data-remote-bytes="(\d+)"', page)
    return {executor: int(size) for executor, size in found}


def undocumented(outcome):
    """Metrics that executors have and docs/user/metrics.md has not, or the other way round."""
    manual = (ROOT / "docs" / "user" / "metrics.md").read_text()
    documented = set(re.findall(r"^\| `([\w.]+)` \|", manual, re.M))
    found = {
        name
        for line in outcome.lines("COUNTERS ")
        for name in re.findall(r"([\w.]+)=", line.split(" ", 2)[2])
    }
    return sorted(documented ^ found)


def counted(outcome):
    """Remote bytes by executor, as the executors' own metrics had them at the end."""
    executors = {}
    for line in outcome.lines("COUNTERS "):
        parts = re.findall(r"remoteBytes\.\w+=([\d.]+(?:E\d+)?)", line)
        executors[line.split()[1]] = int(sum(float(p) for p in parts))
    return executors


def drive(place, version, home, jobs_jar, faro_jar):
    events = place / "events"
    for folder in ("scratch", "local", "events"):
        (place / folder).mkdir(exist_ok=True)
    conf = {
        **launch.ALWAYS,
        "spark.local.dir": str(place / "local"),
        "spark.faro.fallback": "never",
        "spark.ui.enabled": "true",
        "spark.ui.port": str(launch.free_port()),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        f"{PROMETHEUS}.class": "org.apache.spark.metrics.sink.PrometheusServlet",
        f"{PROMETHEUS}.path": "/metrics/prometheus",
    }
    archive = class_archive.found(version, faro_jar)
    environment = launch.environment_for(home, True, archive)
    services = []
    try:
        if version.name in WITH_SERVICE:
            # One for each executor, as on two hosts: executors that share one read files that it
            # lends, and nothing is remote.
            for at in range(2):
                host = place / f"host-{at}"
                host.mkdir()
                services.append(launch.start_node_service(host, place, environment))
            conf["spark.faro.service.directory"] = "/proc/self/cwd/service"
            conf["spark.executorEnv.JAVA_HOME"] = str(launch.java_of_services(place, place))
        command = launch.submit_command(
            home,
            version,
            "faro-ui",
            conf,
            faro_jar,
            ["io.faro.e2e.Jobs", jobs_jar, place / "scratch", "faroTab"],
            behind=BEHIND.get(version.name, ""),
        )
        outcome = launch.drive(command, environment, place)
        for service in services:
            launch.end_node_service(service)
        return outcome
    finally:
        for service in services:
            launch.stop_group(service, 0)


def history(place, home, faro_jar, name, settings, look):
    """Runs a history server over the event logs and hands its address to look()."""
    port = launch.free_port()
    options = {
        "spark.history.fs.logDirectory": (place / "events").as_uri(),
        "spark.history.ui.port": str(port),
        **settings,
    }
    environment = launch.environment_for(home, short_lived=True)
    if faro_jar:
        environment["SPARK_DAEMON_CLASSPATH"] = str(faro_jar)
    environment["SPARK_HISTORY_OPTS"] = " ".join(f"-D{k}={v}" for k, v in options.items())
    with (place / f"{name}.log").open("wb") as log:
        server = subprocess.Popen(
            [str(home / "bin" / "spark-class"), "org.apache.spark.deploy.history.HistoryServer"],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    try:
        return look(f"http://127.0.0.1:{port}", lambda: server.poll() is None)
    finally:
        launch.stop_group(server, 0)


def applications(address):
    """None while the server has another page there: it answers before its API is in place."""
    try:
        return json.loads(fetch(f"{address}/api/v1/applications") or "[]")
    except json.JSONDecodeError:
        return None


def listed(address, alive):
    """The id of the one application."""
    return awaited(
        "the history server should list the application",
        60,
        lambda: applications(address),
        alive,
    )[0]["id"]


def history_page(address, alive):
    app = listed(address, alive)
    page = awaited(
        "the history server should show the Faro tab",
        30,
        lambda: fetch(f"{address}/history/{app}/faro/"),
        alive,
    )
    held(f"{address}/history/{app}/faro/")
    # Programs read the same figures.
    figures = json.loads(fetch(f"{address}/history/{app}/faro/json/"))
    of_executors = {
        one["executor"]: sum(one["counters"].get(f"remoteBytes.{f}", 0) for f in FABRICS)
        for one in figures["executors"]
        if one["executor"] != "driver"
    }
    assert of_executors == rows(page)
    assert figures["shuffles"]
    return page


def plain_history(address, alive):
    """A history server that does not have the jar: Spark's own pages are there, and no tab."""
    app = listed(address, alive)
    page = awaited(
        "the history server should show the application",
        30,
        lambda: fetch(f"{address}/history/{app}/executors/"),
        alive,
    )
    if "/faro/" in page:
        raise AssertionError("there is a Faro tab without the jar")


def held(address):
    """Keeps the page up for a developer to look at: FARO_UI_HOLD names a file, and the history
    server goes on until FILE.history is there."""
    hold = os.environ.get("FARO_UI_HOLD")
    if hold:
        print(f"FARO TAB {address}", flush=True)
        awaited(hold, 240, lambda: Path(hold + ".history").exists(), lambda: True)


@dataclass
class Application:
    """One that has ended, with the event log that it left in `place`."""

    version: spark_home.Version
    place: Path
    home: Path
    outcome: launch.Outcome


def pytest_generate_tests(metafunc):
    oldest, newest = VERSIONS[0], VERSIONS[-1]
    applies = {
        test_history_server: lambda version: version != newest,
        test_history_server_with_a_store_on_disk: lambda version: version == newest,
        test_history_server_without_the_jar: lambda version: version == oldest,
    }.get(metafunc.function, lambda _: True)
    versions = [v for v in metafunc.config.option.versions or VERSIONS if applies(v)]
    if not versions:
        versions = [pytest.param("", marks=pytest.mark.skip("of another version of Spark"))]
    metafunc.parametrize("application", versions, indirect=True, scope="module")


@pytest.fixture(scope="module")
def application(request, faro_jar):
    """The application on one Spark version. Its logs stay if one of its tests failed."""
    version = spark_home.versions_named([request.param])[0]
    jobs_jar = build.java_jar("jobs", sorted((ROOT / "tests" / "spark" / "jobs").rglob("*.java")))
    logs = LOGS / version.name
    shutil.rmtree(logs, ignore_errors=True)
    failed_before = request.session.testsfailed
    place = Path(tempfile.mkdtemp(prefix="faro-ui-"))
    try:
        home = launch.home_of_links(place, spark_home.ensure(version))
        yield Application(version, place, home, drive(place, version, home, jobs_jar, faro_jar))
        if request.session.testsfailed > failed_before:
            logs.mkdir(parents=True)
            for log in [*place.glob("*.log"), *place.glob("scratch/*.html")]:
                shutil.copy(log, logs)
            print(f"\nlogs: {logs.relative_to(ROOT)}")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_live_tab_and_prometheus(application):
    """The application itself compares its page with what its executors counted."""
    outcome = application.outcome
    cases = outcome.lines("CASE ")
    assert cases, f"no case reported, exit code {outcome.exit_code}"
    assert " OK " in cases[0]
    assert outcome.exit_code == 0


def test_the_manual_has_all_metrics(application):
    """docs/user/metrics.md (io.faro.spark.metrics.Metric) and what executors count are the same."""
    assert undocumented(application.outcome) == []


def shows_what_was_counted(application, faro_jar, name, settings):
    page = history(application.place, application.home, faro_jar, name, settings, history_page)
    assert rows(page) == counted(application.outcome)
    assert '<tr data-shuffle="0"' in page, "no row of shuffle 0"
    row = re.search(r'<tr data-query="(\d+)" [^>]*><td[^>]*><a href="([^"]*)">', page)
    assert row, "no row of a query"
    assert re.fullmatch(rf"/history/[^/]+/SQL/execution/\?id={row[1]}", row[2])
    assert "<svg" in page, "no plot"
    assert "channel is in the clear" in page
    assert "Faro runs on 2 of 2 executors." in page
    assert "<th>Major faults</th>" not in page, "a column that is 0 everywhere"
    assert "<th>Tasks waited</th>" in page
    assert "<th>Blocks verbs</th>" not in page, "a column of a fabric that was not used"
    has_service = application.version.name in WITH_SERVICE
    assert bool(SERVICE.search(page)) == has_service, "the row of the node service"
    assert ("<h4>Node services</h4>" in page) == has_service
    assert "<th>Copies behind</th>" not in page, "a column of the node service that is 0 everywhere"
    behind = "behind the shuffle manager sort" in page
    assert behind == (application.version.name in BEHIND)


def test_history_server(application, faro_jar):
    shows_what_was_counted(application, faro_jar, "history-server", {})


def test_history_server_with_a_store_on_disk(application, faro_jar):
    """The second server finds the store of the first and never reads the event log."""
    store = application.place / "store"
    store.mkdir()
    settings = {"spark.history.store.path": str(store)}
    shows_what_was_counted(application, faro_jar, "history-server-store-on-disk", settings)
    shows_what_was_counted(application, faro_jar, "history-server-store-read-again", settings)


def test_history_server_without_the_jar(application):
    name = "history-server-without-the-jar"
    history(application.place, application.home, None, name, {}, plain_history)
