"""What stands between pods: a firewall of the node, NetworkPolicies, a second node."""

from __future__ import annotations

import json
import re

import pytest
from applications import CASES, VERSIONS, check, problems_of
from cluster import SECOND
from harness.verdict import all_by_faro
from submitted import MANIFESTS, NAMESPACE, TEMPLATE

# One block of ports.
PORTS = {"spark.driver.port": 7078, "spark.blockManager.port": 7079, "spark.faro.port": 7100}
FIXED = {name: str(port) for name, port in PORTS.items()}


def listening(run):
    """Where the executors' Faro listens."""
    found = [re.search(r"Faro ready:.*tcp://(\S+)", log) for log in run.executor_logs.values()]
    return [one[1] if one else "none" for one in found]


def on_its_port(run):
    port = PORTS["spark.faro.port"]
    addresses = listening(run)
    right = all(address.endswith(f":{port}") for address in addresses)
    return [] if right else [f"Faro listens on {addresses}"]


@pytest.mark.parametrize("version", VERSIONS)
def test_fixed_ports(submitter, version, record_property):
    """The node drops what pods send each other, apart from connections to these ports."""
    rules = [
        *(f"-p tcp --dport {port} -j ACCEPT" for port in (*PORTS.values(),)),
        "-m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
        "-p tcp -m comment --comment faro-tests -j DROP",
    ]
    cluster = submitter.cluster
    pods = f"-s {cluster.first.pods} -d {cluster.first.pods}"
    for rule in reversed(rules):
        cluster.machine.run("sh", "-c", f"iptables -I FORWARD {pods} {rule}")
    try:
        run, problems = submitter.run(version, "ports", CASES, FIXED)
        counted = cluster.machine.run("iptables", "-L", "FORWARD", "-v", "-n", "-x")
    finally:
        for rule in rules:
            cluster.machine.run("sh", "-c", f"iptables -D FORWARD {pods} {rule}")
    accepted = re.search(rf"^\s*(\d+).*dpt:{PORTS['spark.faro.port']}\b", counted, re.M)
    if not accepted or not int(accepted[1]):
        problems.append(f"no packet went by the rule of Faro's port: {counted}")
    problems += on_its_port(run) + all_by_faro(run)
    check(problems, run, record_property, addresses=listening(run))


@pytest.fixture
def policy(ready, account):
    """The manifest's policies, enforced."""
    assert account
    cluster = ready.cluster
    cluster.policies_hold()
    cluster.apply((MANIFESTS / "network-policy.yaml").read_text())
    yield
    cluster.kubectl("delete", "networkpolicy", "--all", "-n", NAMESPACE)


# Spark 4.2 and later make a policy for each application: its executors take all from its pods.
WITHOUT_SPARKS = {
    "spark.kubernetes.driver.pod.excludedFeatureSteps": (
        "org.apache.spark.deploy.k8s.features.NetworkPolicyFeatureStep"
    )
}


@pytest.mark.usefixtures("policy")
def test_network_policy(submitter, record_property):
    """Pods take connections to the manifest's ports only."""
    run, problems = submitter.run("4.3.0", "policy", CASES, {**FIXED, **WITHOUT_SPARKS})
    problems += on_its_port(run) + all_by_faro(run)
    check(problems, run, record_property, addresses=listening(run))


@pytest.mark.usefixtures("policy")
def test_port_outside_the_policy(submitter, record_property):
    """Faro's connections are refused: Spark's own, whose port is admitted, bring the blocks."""
    conf = {**FIXED, **WITHOUT_SPARKS, "spark.faro.port": "7200", "spark.faro.fallback": "auto"}
    run, problems = submitter.run("4.3.0", "outside", CASES, conf)
    by_faro, left = run.counted("remoteBlocks"), run.counted("fallbackBlocks")
    problems += [f"{by_faro} blocks came through a closed port"] if by_faro else []
    problems += [] if left else ["no block was left to Spark"]
    check(problems, run, record_property, left_to_spark=left)


def test_sparks_own_policy(submitter, ready, record_property):
    """That of Spark 4.2 and later admits Faro's port, whatever it is."""
    ready.cluster.policies_hold()
    running = submitter.start("4.3.0", "own", CASES)
    running.await_line("CASE")
    found = ready.cluster.get("networkpolicy", "-n", NAMESPACE)["items"]
    policies = [one["metadata"]["name"] for one in found]
    run = running.wait()
    problems = problems_of(run, CASES)
    problems += [] if len(policies) == 1 else [f"the policies are {policies}"]
    check([*problems, *all_by_faro(run)], run, record_property, addresses=listening(run))


def spread(place):
    """The restricted template, for executors of which each node has the same number."""
    key, _, value = SECOND.partition(":")[0].partition("=")
    lines = (
        "  tolerations:",
        f"    - {{key: {key}, value: '{value}', effect: NoSchedule}}",
        "  topologySpreadConstraints:",
        "    - maxSkew: 1",
        "      topologyKey: kubernetes.io/hostname",
        "      whenUnsatisfiable: DoNotSchedule",
        "      labelSelector: {matchLabels: {spark-role: executor}}",
    )
    text = TEMPLATE.read_text()
    target = place / "spread.yaml"
    target.write_text(text.replace("\nspec:\n", "\nspec:\n" + "\n".join(lines) + "\n"))
    return target


def test_two_nodes(submitter, ready, tmp_path, record_property):
    """Executors on nodes with network, files and kubelet of their own, over TCP."""
    ready.with_second_node()
    conf = {
        "spark.kubernetes.executor.podTemplateFile": str(spread(tmp_path)),
        "spark.executor.instances": "4",
        "spark.executor.memory": "512m",
    }
    running = submitter.start("4.3.0", "nodes", CASES, conf)
    run = running.wait()
    problems = problems_of(run, CASES)
    nodes = [pod["spec"].get("nodeName") for pod in running.pods("executor")]
    by = {name: nodes.count(name) for name in sorted(set(nodes))}
    problems += [] if list(by.values()) == [2, 2] else [f"executors are on {json.dumps(by)}"]
    check([*problems, *all_by_faro(run, 4)], run, record_property, **by)
