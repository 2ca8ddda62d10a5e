"""Spark in cluster mode on Kubernetes: answers checked exactly, and the way that blocks took."""

from __future__ import annotations

import json
import re

import pytest
from applications import CASES, VERSIONS, after_pods_went, check
from harness.verdict import all_by_faro
from submitted import MANIFESTS, SCRATCH


@pytest.mark.parametrize("version", VERSIONS)
def test_cluster_mode(submitter, version, record_property):
    """Executors without rights on a read-only root file system, with Spark's memory limits."""
    run, problems = submitter.run(version, "mode", CASES)
    check([*problems, *all_by_faro(run)], run, record_property)


@pytest.mark.parametrize("version", VERSIONS)
def test_four_executors(submitter, version, record_property):
    conf = {"spark.executor.instances": "4", "spark.executor.memory": "512m"}
    run, problems = submitter.run(version, "four", CASES, conf)
    check([*problems, *all_by_faro(run, 4)], run, record_property)


@pytest.mark.parametrize("version", VERSIONS)
def test_killed(submitter, version, record_property):
    """A pod is gone at once: its map outputs are made again, by the next one."""
    conf = {
        "spark.shuffle.io.retryWait": "500ms",
        "spark.shuffle.io.maxRetries": "2",
        "spark.task.maxFailures": "8",
    }
    run, problems = after_pods_went(submitter, version, "killed", "outputsLost", conf, 1, 0)
    check(problems, run, record_property, maps=run.lines("MAPS "))


DECOMMISSION = {
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.shuffleBlocks.enabled": "true",
    "spark.storage.decommission.rddBlocks.enabled": "true",
}


@pytest.mark.parametrize("version", VERSIONS)
def test_decommissioned(submitter, version, record_property):
    """A pod has 30 s to leave: its files go to the other one, and no map task runs again."""
    run, problems = after_pods_went(
        submitter, version, "decommissioned", "outputsKept", DECOMMISSION, 1, 30
    )
    check(problems, run, record_property, maps=run.lines("MAPS "))


@pytest.mark.parametrize("version", VERSIONS)
def test_fallback_storage(submitter, version, record_property):
    """All pods leave: their files go to the fall-back storage."""
    conf = {
        **DECOMMISSION,
        "spark.storage.decommission.fallbackStorage.path": f"file://{SCRATCH}/stored/",
    }
    run, problems = after_pods_went(submitter, version, "stored", "outputsKept", conf, 2, 30)
    check(problems, run, record_property, maps=run.lines("MAPS "))


CLASS = "faro-volumes"
REUSED_AFTER = 15  # seconds


def volume(name, directory):
    """A persistent volume of a directory of the node."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": CLASS,
            "hostPath": {"path": str(directory)},
        },
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_volumes_reused(submitter, version, record_property):
    """A pod goes, and the next one has its volume: it recovers the map outputs."""
    tag = version.replace(".", "-")
    names = [f"volume-{tag}-{i}" for i in range(2)]
    for name in names:
        directory = submitter.cluster.place / "volumes" / name
        directory.mkdir(parents=True)
        directory.chmod(0o1777)
        submitter.cluster.apply(volume(name, directory))
    claim = "spark.kubernetes.executor.volumes.persistentVolumeClaim.spark-local-dir-1"
    conf = {
        f"{claim}.options.claimName": "OnDemand",
        f"{claim}.options.storageClass": CLASS,
        f"{claim}.options.sizeLimit": "1Gi",
        # Where Spark's recovery looks: two directories above blockmgr-*.
        f"{claim}.mount.path": "/data/spark-x/executor-x",
        f"{claim}.mount.readOnly": "false",
        # Spark uses a claim again when it is as old as this, 600 s by default.
        "spark.kubernetes.allocation.executor.timeout": f"{REUSED_AFTER}s",
        # Spark 4 asks for ReadWriteOncePod, which directories of a node do not offer.
        "spark.kubernetes.legacy.useReadWriteOnceAccessMode": "true",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "true",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "true",
        "spark.shuffle.sort.io.plugin.class": (
            "org.apache.spark.shuffle.KubernetesLocalDiskShuffleDataIO"
        ),
    }
    run, problems = after_pods_went(
        submitter, version, "volumes", "outputsRecovered", conf, 1, 0, claims_age=REUSED_AFTER
    )
    check(problems, run, record_property)


def test_device_template(submitter, record_property):
    """The template with RDMA, on a node that says it has the resource but has no device."""
    cluster = submitter.cluster
    patch = [
        {"op": "add", "path": f"/status/{kind}/rdma~1faro", "value": "64"}
        for kind in ("capacity", "allocatable")
    ]
    words = ("--subresource=status", "--type=json", "-p", json.dumps(patch))
    cluster.kubectl("patch", "node", cluster.first.name, *words)
    conf = {
        "spark.kubernetes.executor.podTemplateFile": str(MANIFESTS / "executor-template.yaml"),
        "spark.kubernetes.executor.podTemplateContainerName": "executor",
        "spark.shuffle.readHostLocalDisk": "false",
        # Otherwise Spark declares a port of the node, and a node takes one executor.
        "spark.blockManager.port": "0",
        # The driver's is declared in any case.
        "spark.driver.blockManager.port": "7079",
        "spark.executor.memoryOverhead": "1g",
    }
    run, problems = submitter.run("4.3.0", "device", CASES, conf, template=None)
    by = {name: run.counted(f"remoteBlocks.{name}") for name in ("shm", "tcp")}
    check([*problems, *all_by_faro(run)], run, record_property, **by)


@pytest.mark.parametrize("version", VERSIONS)
def test_encrypted(submitter, version, record_property):
    """Spark draws a secret and hands it to the pods of the application: Faro seals its channel."""
    conf = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
    run, problems = submitter.run(version, "encrypted", CASES, conf)
    channels = {
        found[1]
        for log in run.executor_logs.values()
        if (found := re.search(r"Faro ready:.* channel=(.*)", log))
    }
    sealed = channels and all(channel.startswith("sealed") for channel in channels)
    problems += [] if sealed else ["in the clear"]
    check([*problems, *all_by_faro(run)], run, record_property, channels=channels)
