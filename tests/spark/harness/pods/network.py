"""Network namespaces of an application: the driver's, one for each pod, and links between them.

Nothing of the machine's own network is touched: the bridges are in the driver's namespace.
"""

from __future__ import annotations

import os
import subprocess

# Of link 0 and link 1; the driver has .1, the pod of executor N has .(2 + N).
LINKS = ("10.231.0", "10.231.1")


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def address(link, executor):
    return f"{LINKS[link]}.{2 + int(executor)}"


class Network:
    """The namespaces for these executors; `close` removes them."""

    def __init__(self, executors, links=1):
        self.driver = f"faro-pods-{os.getpid()}"
        # By the last link: the first may be cut.
        self.driver_address = f"{LINKS[links - 1]}.1"
        self.names = [self.driver]
        self.executors = list(executors)
        try:
            self._make(links)
        except BaseException:
            self.close()
            raise

    def of(self, executor):
        return f"{self.driver}-{executor}"

    def _make(self, links):
        ip("netns", "add", self.driver)
        ip("-n", self.driver, "link", "set", "lo", "up")
        for link in range(links):
            ip("-n", self.driver, "link", "add", f"br{link}", "type", "bridge")
            ip("-n", self.driver, "addr", "add", f"{LINKS[link]}.1/24", "dev", f"br{link}")
            ip("-n", self.driver, "link", "set", f"br{link}", "up")
        for executor in self.executors:
            pod = self.of(executor)
            ip("netns", "add", pod)
            self.names.append(pod)
            ip("-n", pod, "link", "set", "lo", "up")
            for link in range(links):
                self._connect(executor, link)

    def _connect(self, executor, link):
        pod, outer, inner = self.of(executor), f"pod{executor}l{link}", f"eth{link}"
        ends = ["type", "veth", "peer", "name", inner, "netns", pod]
        ip("-n", self.driver, "link", "add", outer, *ends)
        ip("-n", self.driver, "link", "set", outer, "master", f"br{link}", "up")
        ip("-n", pod, "addr", "add", f"{address(link, executor)}/24", "dev", inner)
        ip("-n", pod, "link", "set", inner, "up")

    def cut(self, executor, link):
        """From now on nothing comes or goes by this link of the pod, which does not notice."""
        ip("-n", self.driver, "link", "set", f"pod{executor}l{link}", "nomaster")

    def command(self, words):
        """`words` in the driver's namespace."""
        return ["nsenter", f"--net=/run/netns/{self.driver}", *words]

    def close(self):
        for name in reversed(self.names):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        self.names = []
