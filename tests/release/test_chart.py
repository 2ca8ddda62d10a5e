"""The chart of docker/faro-serve, packed as for a release: Helm lints and renders it, the daemon
knows the settings that its pods get, and the Prometheus operator their PodMonitor."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from pathlib import Path

import artifacts
import manifests
import pytest
from artifacts import ROOT

SCHEMA = Path(__file__).with_name("podmonitor.schema.json")
FARO = ROOT / "dist" / f"faro-{platform.machine()}"
# Reads YAML, and JSON with a schema and an object.
READ = """
import json, sys, yaml
print(json.dumps([one for one in yaml.safe_load_all(sys.stdin) if one]))
"""
VALIDATE = """
import json, jsonschema, sys
schema, instance = json.load(sys.stdin)
jsonschema.Draft202012Validator.check_schema(schema)
jsonschema.validate(instance, schema)
"""
IMAGE = ("--set", "image=images.test/faro-serve")


def tool(name: str) -> str:
    return subprocess.check_output(["tests/setup/tools", name], cwd=ROOT, text=True).strip()


def python(program: str, given: str) -> str:
    words = [tool("jsonschema"), "-c", program]
    done = subprocess.run(words, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1000:]
    return done.stdout


class Chart:
    def __init__(self, place: Path):
        self.helm = tool("helm")
        self.file = manifests.write_chart(place, artifacts.project())

    def call(self, command: str, *words: str) -> subprocess.CompletedProcess:
        """Helm's answer; nothing of this machine's Helm has a part in it."""
        place = self.file.parent
        environment = {f"HELM_{kind}_HOME": str(place) for kind in ("CACHE", "CONFIG", "DATA")}
        full = [self.helm, command, *words]
        return subprocess.run(full, capture_output=True, text=True, check=False, env=environment)

    def render(self, *words: str) -> dict[str, dict]:
        """The objects by their kinds."""
        names = ("faro-serve", str(self.file), "--namespace", "faro")
        done = self.call("template", *names, *IMAGE, *words)
        assert done.returncode == 0, done.stderr
        objects = json.loads(python(READ, done.stdout))
        return {one["kind"]: one for one in objects}


@pytest.fixture(scope="module")
def chart(tmp_path_factory):
    return Chart(tmp_path_factory.mktemp("chart"))


def test_lint(chart):
    done = chart.call("lint", "--strict", str(chart.file), *IMAGE)
    assert done.returncode == 0, done.stdout


def test_a_daemon_on_each_node(chart):
    objects = chart.render()
    assert set(objects) == {"DaemonSet"}
    daemons = objects["DaemonSet"]
    assert daemons["metadata"] == {"name": "faro-serve", "namespace": "faro"}
    template = daemons["spec"]["template"]
    labels = template["metadata"]["labels"]
    assert daemons["spec"]["selector"]["matchLabels"] == labels == {"app": "faro-serve"}
    assert template["metadata"]["annotations"]["prometheus.io/port"] == "7301"
    (before,), (daemon,) = template["spec"]["initContainers"], template["spec"]["containers"]
    version = artifacts.project().version
    assert before["image"] == daemon["image"] == f"images.test/faro-serve:{version}"
    assert before["command"] == ["chown", "185", "/data/socket", "/data/kept"]
    assert daemon["securityContext"]["runAsUser"] == 185
    assert {port["name"]: port["containerPort"] for port in daemon["ports"]} == {
        "readers": 7300,
        "metrics": 7301,
    }
    places = {one["name"]: one["hostPath"]["path"] for one in template["spec"]["volumes"]}
    assert places == {"socket": "/var/lib/faro/socket", "kept": "/var/lib/faro/kept"}
    mounts = {one["name"]: one["mountPath"] for one in daemon["volumeMounts"]}
    assert mounts == {"socket": "/data/socket", "kept": "/data/kept"}


def test_the_daemon_knows_its_settings(chart):
    more = ("--set", "environment.FARO_SERVE_QUOTA=500g", "--set", "memory=2g")
    (daemon,) = chart.render(*more)["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    values = {one["name"]: one.get("value") for one in daemon["env"]}
    assert (values["FARO_SERVE_MEMORY"], values["FARO_SERVE_QUOTA"]) == ("2g", "500g")
    told = subprocess.check_output([FARO, "serve", "--help"], text=True)
    assert set(values) <= set(re.findall(r"\[env: (FARO_SERVE_\w+)=", told))


def test_the_operator_takes_the_pod_monitor(chart):
    labels = ("--set", "podMonitor.labels.release=prometheus", "--set", "podMonitor.interval=1m")
    objects = chart.render("--set", "podMonitor.enabled=true", *labels)
    monitor, template = objects["PodMonitor"], objects["DaemonSet"]["spec"]["template"]
    python(VALIDATE, json.dumps([json.loads(SCHEMA.read_text()), monitor]))
    assert monitor["metadata"]["labels"] == {"release": "prometheus"}
    assert monitor["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    ports = [one["name"] for one in template["spec"]["containers"][0]["ports"]]
    assert endpoint["port"] in ports
    assert "annotations" not in template["metadata"], "Prometheus would read the figures twice"


def test_network_policy(chart):
    admitted = '[{"namespaceSelector":{"matchLabels":{"name":"monitoring"}}}]'
    words = ("--set", "networkPolicy.enabled=true", "--set-json")
    policy = chart.render(*words, f"networkPolicy.metricsFrom={admitted}")["NetworkPolicy"]
    readers, figures = policy["spec"]["ingress"]
    assert [readers["ports"], figures["ports"]] == [
        [{"protocol": "TCP", "port": port}] for port in (7300, 7301)
    ]
    assert figures["from"] == json.loads(admitted)
    assert policy["spec"]["podSelector"]["matchLabels"] == {"app": "faro-serve"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "image="), "image: the registry and name"),
        (("--set", "port=0"), "port"),
        (("--set", "environment.PATH=/bin"), "PATH"),
        (("--set", "podmonitor.enabled=true"), "podmonitor"),
    ],
)
def test_a_wrong_value_is_refused(chart, words, said):
    done = chart.call("template", "faro-serve", str(chart.file), *IMAGE, *words)
    assert done.returncode != 0
    assert said in done.stderr
