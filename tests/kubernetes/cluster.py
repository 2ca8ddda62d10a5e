"""Kubernetes on one machine: etcd, API server, controller manager, scheduler and DNS on the first
of its nodes; a second one joins when a test asks for it."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from pathlib import Path

import certificates
import components
from node import API, API_ADDRESS, DOMAIN, SERVICES, Node

# Pods without its toleration stay where they are.
SECOND = "faro.test/second=true:NoSchedule"
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


COREFILE = f"""{DOMAIN}:53 {{
    bind {API_ADDRESS}
    errors
    kubernetes {DOMAIN} {{
        kubeconfig {{place}}/admin.conf
        ttl 0
    }}
}}
.:53 {{
    bind {API_ADDRESS}
    errors
}}
"""


class NotReady(Exception):
    """A daemon did not come up."""


class Cluster:
    def __init__(self, place, logs, pause):
        """`pause`: the name of the image of a pod's first container."""
        commands, packages = components.ensure()
        self.place, self.logs, self.pause = Path(place), Path(logs), pause
        self.nodes = [Node(index, self.place, self.logs, commands, packages) for index in (1, 2)]
        self.first, self.second = self.nodes
        self.machine, self.commands = self.first.machine, commands
        self.certs = self.place / "certs"

    def start(self, pause_archive):
        """`pause_archive`: the image's."""
        self.logs.mkdir(parents=True, exist_ok=True)
        self.place.mkdir(parents=True, exist_ok=True)
        names = [node.name for node in self.nodes]
        certificates.make(self.certs, [API_ADDRESS, "127.0.0.1", f"{SERVICES}.1"], names)
        for user in ("admin", *names):
            text = json.dumps(kubeconfig(self.certs, user))
            (self.place / f"{user}.conf").write_text(text)
        self.start_machine(self.first, [pause_archive])
        self.start_etcd()
        self.start_api()
        self.await_("the API server should be ready", self.api_is_ready)
        self.start_controllers()
        self.first.start_kubelet(self.certs)
        self.await_("the node should be ready", lambda: self.node_is_ready(self.first))

    def start_machine(self, node, archives):
        node.machine.start()
        node.start_containerd(self.pause)
        self.await_("containerd should answer", node.containerd_answers)
        for archive in archives:
            node.ctr("images", "import", archive)

    def start_second(self, archives):
        """Once. Only pods that tolerate its taint go there."""
        self.start_machine(self.second, archives)
        self.second.join(self.first)
        self.second.start_kubelet(self.certs, "--register-with-taints", SECOND)
        self.await_("the second node should be ready", lambda: self.node_is_ready(self.second))

    def start_etcd(self):
        self.first.daemon(
            *("etcd", self.commands / "etcd", "--name", "faro", "--data-dir", self.place / "etcd"),
            *("--listen-client-urls", "http://127.0.0.1:2379"),
            *("--advertise-client-urls", "http://127.0.0.1:2379"),
            *("--listen-peer-urls", "http://127.0.0.1:2380"),
        )

    def start_api(self):
        certs = self.certs
        self.first.daemon(
            *("kube-apiserver", self.commands / "kube-apiserver"),
            *("--etcd-servers", "http://127.0.0.1:2379", "--advertise-address", API_ADDRESS),
            *("--bind-address", API_ADDRESS, "--service-cluster-ip-range", f"{SERVICES}.0/24"),
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
        self.first.daemon(
            *("kube-controller-manager", self.commands / "kube-controller-manager"),
            *("--kubeconfig", admin, "--root-ca-file", self.certs / "ca.crt"),
            *("--service-account-private-key-file", self.certs / "service-accounts.key"),
            *("--leader-elect=false", "--cert-dir", self.certs),
        )
        self.first.daemon(
            *("kube-scheduler", self.commands / "kube-scheduler", "--kubeconfig", admin),
            *("--leader-elect=false", "--cert-dir", self.certs),
        )
        corefile = self.first.write("Corefile", COREFILE.replace("{place}", str(self.place)))
        self.first.daemon("coredns", self.commands / "coredns", "-conf", corefile)

    def policies_hold(self):
        """NetworkPolicies are enforced on the first node from now on."""
        if "policies" not in self.first.daemons:
            self.first.start_policies()
        chain = ("iptables", "-S", "KUBE-ROUTER-FORWARD")
        self.await_("policies should be enforced", lambda: self.succeeds(*chain))

    def succeeds(self, *words):
        with contextlib.suppress(RuntimeError):
            self.machine.run(*words)
            return True
        return False

    def kubectl(self, *words, **options):
        env = self.first.environment()
        return self.machine.run(self.commands / "kubectl", *words, env=env, **options)

    def get(self, *words):
        return json.loads(self.kubectl("get", "-o", "json", *words))

    def apply(self, *objects):
        """Of dicts, or the text of a file."""
        for one in objects:
            text = one if isinstance(one, str) else json.dumps(one)
            self.kubectl("apply", "-f", "-", input=text)

    def api_is_ready(self):
        with contextlib.suppress(RuntimeError):
            self.kubectl("get", "--raw", "/readyz")
            return True
        return False

    def node_is_ready(self, node):
        with contextlib.suppress(RuntimeError):
            conditions = self.get("node", node.name)["status"].get("conditions", [])
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
            # Without it no pod is taken.
            return ready and bool(self.get("serviceaccount", "default"))
        return False

    def await_(self, what, holds, seconds=READY_WITHIN):
        deadline = time.monotonic() + seconds
        daemons = [pair for node in self.nodes for pair in node.daemons.items()]
        while not (found := holds()):
            ended = [name for name, daemon in daemons if daemon.poll() is not None]
            if ended:
                raise NotReady(f"{what}: {', '.join(ended)} ended; see {self.logs}")
            if time.monotonic() > deadline:
                raise NotReady(f"{what}: not within {seconds} s; see {self.logs}")
            time.sleep(0.2)
        return found

    def stop(self):
        """Idempotent."""
        with contextlib.ExitStack() as all_of_them:
            for node in self.nodes:
                all_of_them.callback(node.stop)
        shutil.rmtree(self.place, ignore_errors=True)
