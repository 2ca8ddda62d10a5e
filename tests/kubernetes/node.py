"""A node of the cluster: a machine with containerd, kubelet and kube-proxy, and a range of pods'
addresses."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path

from machine import Machine

API_ADDRESS = "10.97.0.1"
API = f"https://{API_ADDRESS}:6443"
SERVICES = "10.99.0"  # /24; the API server has .1
ALL_PODS = "10.98.0.0/16"
DOMAIN = "cluster.local"
RUNTIME = "/run/containerd/containerd.sock"

KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "authorization": {"mode": "AlwaysAllow"},
    "cgroupDriver": "cgroupfs",
    "failCgroupV1": False,
    "failSwapOn": False,
    "containerRuntimeEndpoint": f"unix://{RUNTIME}",
    "clusterDNS": [API_ADDRESS],
    "clusterDomain": DOMAIN,
    "resolvConf": "/etc/resolv.conf",
    # Kernel parameters and the kubelet's own oom_score_adj are the host's: errors are not fatal.
    "featureGates": {"KubeletInUserNamespace": True},
    "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%"},
    "imageGCHighThresholdPercent": 100,
    "imageGCLowThresholdPercent": 99,
    "serializeImagePulls": False,
    "containerLogMaxSize": "100Mi",
    "syncFrequency": "10s",
}

PROXY = {
    "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
    "kind": "KubeProxyConfiguration",
    "mode": "iptables",
    "clusterCIDR": ALL_PODS,
    # The kernel's limits of connection tracking are those of the host.
    "conntrack": {"maxPerCore": 0, "min": 0},
}


def network(pods):
    return {
        "cniVersion": "0.4.0",
        "name": "faro",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": pods}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            }
        ],
    }


CONTAINERD = """version = 2
root = "{place}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "{runtime}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # A process may lower its oom_score_adj with CAP_SYS_RESOURCE only, which a guest may lack.
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "/etc/cni/net.d"
"""


class Node:
    """`index`: 1 is the one that has the API server, too. `shared`: the cluster's directory, in
    which a node has its own; `commands`: where Kubernetes' are."""

    def __init__(self, index, shared, logs, commands, packages):
        self.index, self.shared, self.logs, self.commands = index, Path(shared), logs, commands
        self.name = "faro-node" if index == 1 else f"faro-node-{index}"
        self.address = f"10.97.0.{index}"
        self.pods = f"10.98.{index}.0/24"  # the bridge has .1
        self.place = self.shared / self.name
        self.machine = Machine(self.place, packages, self.name, self.address)
        self.daemons = {}

    def write(self, name, value):
        target = self.place / name
        # JSON is YAML.
        target.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))
        return target

    def daemon(self, name, *words, **environment):
        name = name if self.index == 1 else f"{name}-{self.index}"
        with (self.logs / f"{name}.log").open("ab") as out:
            self.daemons[name] = self.machine.start_process(
                words,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**self.environment(), **environment},
                cwd=self.place,
            )

    def environment(self):
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "JAVA_HOME")}
        kept["PATH"] = f"{self.commands}:/usr/local/sbin:/usr/sbin:/sbin:{kept.get('PATH', '')}"
        return {**kept, "KUBECONFIG": str(self.shared / "admin.conf")}

    def start_containerd(self, pause):
        """`pause`: the name of the image of a pod's first container."""
        text = CONTAINERD.format(place=self.place, runtime=RUNTIME, pause=pause)
        config = self.write("containerd.toml", text)
        self.machine.run("mkdir", "-p", "/etc/cni/net.d", "/var/lib/cni")
        plug_ins = self.write("10-faro.conflist", network(self.pods))
        self.machine.run("cp", plug_ins, "/etc/cni/net.d/")
        # What pods' name servers are where they do not ask the cluster's.
        self.machine.run("sh", "-c", f"echo nameserver {API_ADDRESS} > /etc/resolv.conf")
        self.daemon("containerd", "/usr/bin/containerd", "--config", config)

    def start_kubelet(self, certs, *options):
        places = {
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(certs / "ca.crt")},
            },
            "podLogsDir": str(self.place / "pod-logs"),
            "volumePluginDir": str(self.place / "volume-plugins"),
        }
        config = self.write("kubelet.yaml", {**KUBELET, **places})
        self.daemon(
            *("kubelet", self.commands / "kubelet", "--config", config, *options),
            *("--kubeconfig", self.shared / f"{self.name}.conf", "--hostname-override", self.name),
            *("--root-dir", self.place / "kubelet", "--cert-dir", self.place / "kubelet-certs"),
            *("--node-ip", self.address),
        )
        access = {"clientConnection": {"kubeconfig": str(self.shared / "admin.conf")}}
        config = self.write("kube-proxy.yaml", {**PROXY, **access, "hostnameOverride": self.name})
        self.daemon("kube-proxy", self.commands / "kube-proxy", "--config", config)

    def start_policies(self):
        """NetworkPolicies hold for the pods of this node from now on."""
        words = (self.commands / "policies", self.shared / "admin.conf", self.name)
        self.daemon("policies", *words, f"{SERVICES}.0/24")

    def ctr(self, *words):
        command = ("ctr", "--address", RUNTIME, "--namespace", "k8s.io", *words)
        return self.machine.run(*command, env=self.environment())

    def containerd_answers(self):
        with contextlib.suppress(RuntimeError):
            self.ctr("version")
            return True
        return False

    def join(self, other):
        """Each sends the other what is for the other's pods."""
        self.machine.join(other.machine)
        for node, far in ((self, other), (other, self)):
            node.machine.run("ip", "route", "add", far.pods, "via", far.address)

    def stop(self):
        """Idempotent."""
        self.machine.stop()
        for daemon in self.daemons.values():
            daemon.wait()
