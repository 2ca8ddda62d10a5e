"""Kubernetes on one machine: etcd, API server, controller manager, scheduler, DNS, and a node with
containerd, kubelet and kube-proxy, all in the namespaces of machine.py."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path

import certificates
import components
from machine import ADDRESS, HOST, Machine

PODS = "10.98.0"  # /24; the bridge has .1
SERVICES = "10.99.0"  # /24; the API server has .1
DOMAIN = "cluster.local"
API = f"https://{ADDRESS}:6443"
RUNTIME = "/run/containerd/containerd.sock"
READY_WITHIN = 120  # seconds


def kubeconfig(certs, name):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "faro",
                "cluster": {"server": API, "certificate-authority": str(certs / "ca.crt")},
            }
        ],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate": str(certs / f"{name}.crt"),
                    "client-key": str(certs / f"{name}.key"),
                },
            }
        ],
        "contexts": [{"name": "faro", "context": {"cluster": "faro", "user": name}}],
        "current-context": "faro",
    }


KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "cgroupDriver": "cgroupfs",
    "failCgroupV1": False,
    "failSwapOn": False,
    "containerRuntimeEndpoint": f"unix://{RUNTIME}",
    "clusterDNS": [ADDRESS],
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
    "clusterCIDR": f"{PODS}.0/24",
    "hostnameOverride": HOST,
    # The kernel's limits of connection tracking are those of the host.
    "conntrack": {"maxPerCore": 0, "min": 0},
}

NETWORK = {
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
                "ranges": [[{"subnet": f"{PODS}.0/24"}]],
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

COREFILE = f"""{DOMAIN}:53 {{
    bind {ADDRESS}
    errors
    kubernetes {DOMAIN} {{
        kubeconfig {{place}}/admin.conf
        ttl 0
    }}
}}
.:53 {{
    bind {ADDRESS}
    errors
}}
"""


class NotReady(Exception):
    """A daemon did not come up."""


class Cluster:
    def __init__(self, place, logs, pause):
        """`pause`: the name of the image of a pod's first container."""
        self.commands, debian = components.ensure()
        self.machine = Machine(place, debian)
        self.place, self.logs, self.pause = Path(place), Path(logs), pause
        self.daemons = {}

    def start(self, pause_archive):
        """`pause_archive`: the image's."""
        self.logs.mkdir(parents=True, exist_ok=True)
        self.machine.start()
        self.certs = self.place / "certs"
        certificates.make(self.certs, [ADDRESS, "127.0.0.1", f"{SERVICES}.1"], HOST)
        for user in ("admin", "kubelet"):
            self.write(f"{user}.conf", kubeconfig(self.certs, user))
        self.start_etcd()
        self.start_containerd()
        self.ctr("images", "import", pause_archive)
        self.start_api()
        self.await_("the API server should be ready", self.api_is_ready)
        self.start_controllers()
        self.start_node()
        self.await_("the node should be ready", self.node_is_ready)

    def write(self, name, value):
        target = self.place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        # JSON is YAML.
        target.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))
        return target

    def daemon(self, name, *words, **environment):
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
        return {**kept, "KUBECONFIG": str(self.place / "admin.conf")}

    def start_etcd(self):
        self.daemon(
            *("etcd", self.commands / "etcd", "--name", "faro", "--data-dir", self.place / "etcd"),
            *("--listen-client-urls", "http://127.0.0.1:2379"),
            *("--advertise-client-urls", "http://127.0.0.1:2379"),
            *("--listen-peer-urls", "http://127.0.0.1:2380"),
        )

    def start_containerd(self):
        text = CONTAINERD.format(place=self.place, runtime=RUNTIME, pause=self.pause)
        config = self.write("containerd.toml", text)
        self.machine.run("mkdir", "-p", "/etc/cni/net.d", "/var/lib/cni")
        network = self.write("10-faro.conflist", NETWORK)
        self.machine.run("cp", network, "/etc/cni/net.d/")
        # What pods' name servers are where they do not ask the cluster's.
        self.machine.run("sh", "-c", f"echo nameserver {ADDRESS} > /etc/resolv.conf")
        self.daemon("containerd", "/usr/bin/containerd", "--config", config)
        self.await_("containerd should answer", lambda: self.answers("ctr", "version"))

    def start_api(self):
        certs = self.certs
        self.daemon(
            *("kube-apiserver", self.commands / "kube-apiserver"),
            *("--etcd-servers", "http://127.0.0.1:2379", "--advertise-address", ADDRESS),
            *("--bind-address", ADDRESS, "--service-cluster-ip-range", f"{SERVICES}.0/24"),
            *("--client-ca-file", certs / "ca.crt", "--tls-cert-file", certs / "server.crt"),
            *("--tls-private-key-file", certs / "server.key", "--cert-dir", certs),
            *("--service-account-key-file", certs / "service-accounts.pub"),
            *("--service-account-signing-key-file", certs / "service-accounts.key"),
            *("--service-account-issuer", f"https://kubernetes.default.svc.{DOMAIN}"),
            *("--kubelet-client-certificate", certs / "admin.crt"),
            *("--kubelet-client-key", certs / "admin.key"),
            *("--authorization-mode", "Node,RBAC", "--allow-privileged=true"),
        )

    def start_controllers(self):
        admin = self.place / "admin.conf"
        self.daemon(
            *("kube-controller-manager", self.commands / "kube-controller-manager"),
            *("--kubeconfig", admin, "--root-ca-file", self.certs / "ca.crt"),
            *("--service-account-private-key-file", self.certs / "service-accounts.key"),
            *("--leader-elect=false", "--cert-dir", self.certs),
        )
        self.daemon(
            *("kube-scheduler", self.commands / "kube-scheduler", "--kubeconfig", admin),
            *("--leader-elect=false", "--cert-dir", self.certs),
        )
        corefile = self.write("Corefile", COREFILE.replace("{place}", str(self.place)))
        self.daemon("coredns", self.commands / "coredns", "-conf", corefile)

    def start_node(self):
        KUBELET["authentication"]["x509"] = {"clientCAFile": str(self.certs / "ca.crt")}
        places = {
            "podLogsDir": str(self.pod_logs()),
            "volumePluginDir": str(self.place / "volume-plugins"),
        }
        config = self.write("kubelet.yaml", {**KUBELET, **places})
        self.daemon(
            *("kubelet", self.commands / "kubelet", "--config", config),
            *("--kubeconfig", self.place / "kubelet.conf", "--hostname-override", HOST),
            *("--root-dir", self.place / "kubelet", "--cert-dir", self.certs),
            *("--node-ip", ADDRESS),
        )
        proxy = {**PROXY, "clientConnection": {"kubeconfig": str(self.place / "admin.conf")}}
        config = self.write("kube-proxy.yaml", proxy)
        self.daemon("kube-proxy", self.commands / "kube-proxy", "--config", config)

    def pod_logs(self):
        return self.place / "pod-logs"

    def kubectl(self, *words, **options):
        env = self.environment()
        return self.machine.run(self.commands / "kubectl", *words, env=env, **options)

    def get(self, *words):
        return json.loads(self.kubectl("get", "-o", "json", *words))

    def apply(self, *objects):
        """Of dicts, or the text of a file."""
        for one in objects:
            text = one if isinstance(one, str) else json.dumps(one)
            self.kubectl("apply", "-f", "-", input=text)

    def ctr(self, *words):
        command = ("ctr", "--address", RUNTIME, "--namespace", "k8s.io", *words)
        return self.machine.run(*command, env=self.environment())

    def answers(self, program, *words):
        with contextlib.suppress(RuntimeError):
            self.ctr(*words) if program == "ctr" else self.kubectl(*words)
            return True
        return False

    def api_is_ready(self):
        return self.answers("kubectl", "get", "--raw", "/readyz")

    def node_is_ready(self):
        with contextlib.suppress(RuntimeError):
            nodes = self.get("nodes")["items"]
            conditions = nodes[0]["status"].get("conditions", []) if nodes else []
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
            # Without it no pod is taken.
            return ready and bool(self.get("serviceaccount", "default"))
        return False

    def await_(self, what, holds, seconds=READY_WITHIN):
        deadline = time.monotonic() + seconds
        while not (found := holds()):
            ended = [name for name, daemon in self.daemons.items() if daemon.poll() is not None]
            if ended:
                raise NotReady(f"{what}: {', '.join(ended)} ended; see {self.logs}")
            if time.monotonic() > deadline:
                raise NotReady(f"{what}: not within {seconds} s; see {self.logs}")
            time.sleep(0.2)
        return found

    def stop(self):
        """Idempotent."""
        self.machine.stop()
        for daemon in self.daemons.values():
            daemon.wait()
