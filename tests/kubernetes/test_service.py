"""Map outputs that outlive the pods that made them, and dynamic allocation: `faro serve` from the
chart as `make release` packs it, and Spark's shuffle tracking without it."""

from __future__ import annotations

import subprocess

import artifacts
import manifests
import pytest
from applications import VERSIONS, after_pods_went, check
from images import spark_image
from submitted import NAMESPACE

SOCKET = "spark.kubernetes.executor.volumes.hostPath.faro"
SERVICE = {
    f"{SOCKET}.mount.path": "/run/faro",
    f"{SOCKET}.options.path": "/var/lib/faro/socket",
    "spark.faro.service.directory": "/run/faro",
}
ELASTIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.initialExecutors": "2",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.executorIdleTimeout": "3s",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
}


def rendered(place, version):
    """The chart with an image of Spark that has the command."""
    chart = manifests.write_chart(place, artifacts.project())
    helm = subprocess.check_output(["tests/setup/tools", "helm"], cwd=artifacts.ROOT, text=True)
    image, _, tag = spark_image(version).rpartition(":")
    values = ("--set", f"image={image},tag={tag},pullPolicy=Never,networkPolicy.enabled=true")
    words = [helm.strip(), "template", "faro-serve", chart, "--namespace", NAMESPACE, *values]
    return subprocess.check_output(words, text=True)


class Service:
    """`faro serve` on the nodes, and what its pods say."""

    def __init__(self, ready):
        self.ready, self.cluster = ready, ready.cluster

    def deploy(self, place, version):
        self.ready.with_spark(version)
        self.cluster.apply(rendered(place, version))
        words = ("daemonset/faro-serve", "-n", NAMESPACE, "--timeout=60s")
        self.cluster.kubectl("rollout", "status", *words)
        found = self.cluster.get("pods", "-n", NAMESPACE, "-l", "app=faro-serve")["items"]
        self.pods = [pod["metadata"]["name"] for pod in found]

    def log(self):
        logs = self.ready.logs.of(NAMESPACE)
        return "".join(logs.get(pod, "") for pod in self.pods)

    def remove(self):
        """With its pods, which have the socket of the next one."""
        what = ("daemonset/faro-serve", "networkpolicy/faro-serve")
        words = (*what, "-n", NAMESPACE, "--cascade=foreground", "--wait")
        self.cluster.kubectl("delete", *words)


@pytest.fixture
def service(ready, account, tmp_path):
    assert account
    found = Service(ready)
    found.deploy(tmp_path / "release", VERSIONS[0])
    yield found
    found.remove()


def served(run, service):
    """What the service did, and what is wrong with it."""
    names = ("serviceBlocks", "serviceLocalBlocks", "serviceOutputs")
    counts = {name: run.counted(name) for name in names}
    came = counts["serviceBlocks"] + counts["serviceLocalBlocks"]
    problems = [] if came else ["no block came from the service"]
    log = service.log()
    return counts, problems + ([] if "has ended" in log else [f"the service's log: {log[-400:]}"])


def test_node_service(submitter, service, record_property):
    """Outputs outlive all pods that made them."""
    run, problems = after_pods_went(submitter, "4.3.0", "serve", "outputsKept", SERVICE, 2, 0)
    counts, wrong = served(run, service)
    check([*problems, *wrong], run, record_property, maps=run.lines("MAPS "), **counts)


@pytest.mark.parametrize("version", VERSIONS)
def test_given_back(submitter, service, version, record_property):
    """Without shuffle tracking: all executors leave, and those that come read from the service."""
    conf = {**SERVICE, **ELASTIC, "spark.dynamicAllocation.shuffleTracking.enabled": "false"}
    run, problems = submitter.run(version, "given-back", ["allGivenBack"], conf, main="PodJobs")
    counts, wrong = served(run, service)
    check([*problems, *wrong], run, record_property, maps=run.lines("MAPS "), **counts)


def test_tracked(submitter, record_property):
    """Shuffle tracking: executors without outputs leave, those with outputs stay."""
    conf = {
        **ELASTIC,
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        # One more than there are map tasks: on a slow machine each executor may run one.
        "spark.dynamicAllocation.maxExecutors": "17",
    }
    run, problems = submitter.run("4.3.0", "tracked", ["idleGivenBack"], conf, main="PodJobs")
    problems += [] if run.counted("remoteBlocks") else ["no block came through Faro"]
    problems += [f"{n} fall-backs"] if (n := run.counted("fallbacks")) else []
    check(problems, run, record_property, maps=run.lines("MAPS "))
