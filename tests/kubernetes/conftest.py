"""Options of tests/kubernetes, and the cluster."""

from __future__ import annotations

import shutil
from pathlib import Path

import components
import machine
import pytest
from applications import LOGS, ROOT, Submitter
from cluster import Cluster
from harness import build, launch
from images import OWN_SCRIPTS, PAUSE, SCRIPTS, Images
from pod_logs import PodLogs
from submitted import MANIFESTS, NAMESPACE

JOBS = [ROOT / "tests" / "spark" / "jobs", Path(__file__).resolve().parent / "jobs"]


def pytest_addoption(parser):
    add = parser.getgroup("faro", "Spark with Faro on Kubernetes").addoption
    add("--jar", type=Path, default=ROOT / "dist" / "faro-spark.jar")
    add("--command", type=Path, default=ROOT / "dist" / "faro-x86_64", help="the command faro")
    about = "a folder with another entrypoint.sh and decom.sh of the image, such as Spark's"
    add("--scripts", type=Path, default=OWN_SCRIPTS, help=about)


def pytest_configure(config):
    for file in (config.option.jar, config.option.command):
        if not file.is_file():
            raise pytest.UsageError(f"{file} is missing: run 'make jar' first, or pass its place")
    for name in SCRIPTS:
        if not (config.option.scripts / name).is_file():
            raise pytest.UsageError(f"--scripts: there is no {config.option.scripts / name}")


@pytest.fixture(scope="session")
def images(pytestconfig, tmp_path_factory):
    """Imports an image of a Spark when it is first asked for."""
    if reason := machine.why_not():
        pytest.skip(f"no cluster can be started here: {reason}")
    made = Images(tmp_path_factory.mktemp("images"), pytestconfig.option.scripts)
    yield made
    shutil.rmtree(made.place, ignore_errors=True)


@pytest.fixture(scope="session")
def jobs_jar():
    sources = sorted(file for place in JOBS for file in place.rglob("*.java"))
    return build.java_jar("jobs-kubernetes", sources)


class Ready:
    """The cluster that runs, with what tests need of it."""

    def __init__(self, cluster, images, pytestconfig, jobs_jar):
        self.cluster, self.images = cluster, images
        option = pytestconfig.option
        self.parts = (option.jar.resolve(), option.command.resolve(), jobs_jar)
        self.archives = {"pause": images.pause()}
        self.logs = PodLogs(cluster.place, cluster.place / "kept-logs")

    def with_spark(self, version):
        if version not in self.archives:
            self.archives[version] = self.images.spark(version, *self.parts)
            for node in self.cluster.nodes:
                if node.daemons:
                    node.ctr("images", "import", self.archives[version])
        return self

    def with_second_node(self):
        if not self.cluster.second.daemons:
            self.cluster.start_second(self.archives.values())
        return self


@pytest.fixture(scope="session")
def ready(pytestconfig, images, jobs_jar, tmp_path_factory):
    shutil.rmtree(LOGS, ignore_errors=True)
    try:
        cluster = Cluster(
            tmp_path_factory.mktemp("kubernetes") / "cluster", LOGS / "cluster", PAUSE
        )
    except components.Missing as missing:
        pytest.skip(f"no cluster can be started here: {missing}")
    found = None
    try:
        try:
            found = Ready(cluster, images, pytestconfig, jobs_jar)
            cluster.start(found.archives["pause"])
        except machine.NotPossible as refused:
            pytest.skip(f"no cluster can be started here: {refused}")
        yield found
    finally:
        if found:
            found.logs.close()
        cluster.stop()
        launch.stop_all()


@pytest.fixture(scope="session")
def account(ready):
    """Namespace and service account as the documents have them."""
    ready.cluster.apply((MANIFESTS / "account.yaml").read_text())
    return NAMESPACE


@pytest.fixture
def submitter(ready, account, tmp_path):
    assert account
    found = Submitter(ready, ready.cluster.place / "applications" / tmp_path.name)
    yield found
    found.close()
