"""Makes hosts on this machine: network namespaces, each joined to a switch by a link of one rate.

The driver is in the switch's namespace, and the executors are in those of two hosts. Nothing
outside these namespaces is changed: their addresses and devices exist only in them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

from harness import launch

HOSTS = 2
NETWORK = "10.77.0"
SWITCH_ADDRESS = f"{NETWORK}.1"
# A switch has a queue of about this length, and bursts last a millisecond.
QUEUE = "20ms"
MIN_BURST = 128 << 10
PROBE_SECONDS = 1.5

PROBE_SERVER = """
import socket, sys
server = socket.create_server((sys.argv[1], 0))
print(server.getsockname()[1], flush=True)
peer, _ = server.accept()
buffer = bytearray(1 << 20)
while peer.recv_into(buffer):
    pass
"""
PROBE_CLIENT = """
import socket, sys, time
seconds = float(sys.argv[3])
peer = socket.create_connection((sys.argv[1], int(sys.argv[2])))
chunk, sent, start = bytes(1 << 20), 0, time.monotonic()
while time.monotonic() < start + seconds:
    sent += peer.send(chunk)
print(sent * 8 / (time.monotonic() - start) / 1e9)
"""


class Unavailable(RuntimeError):
    """This machine cannot have such links; the message gives the reason."""


class Links:
    """Hosts whose links carry `gigabits` per second in each direction; `close` removes all.

    With a `core` each half of the hosts has a switch of its own, and a link of so many Gbit/s joins
    the switches."""

    def __init__(self, gigabits: float, hosts: int = HOSTS, core: float = 0.0):
        self.gigabits, self.core = gigabits, core
        self.switch = f"faro-{os.getpid()}-switch"
        self.hosts = [f"faro-{os.getpid()}-{number}" for number in range(hosts)]
        if os.geteuid() != 0:
            raise Unavailable("network namespaces need root")
        for program in ("ip", "tc", "nsenter"):
            if not shutil.which(program):
                raise Unavailable(f"there is no program {program} (iproute2, util-linux)")
        try:
            self._make()
        except Unavailable:
            self.close()
            raise

    def _make(self) -> None:
        for name in (self.switch, *self.hosts):
            _run("ip", "netns", "add", name)
            _run("ip", "-n", name, "link", "set", "lo", "up")
        _run("ip", "-n", self.switch, "link", "add", "switch", "type", "bridge")
        _run("ip", "-n", self.switch, "address", "add", f"{SWITCH_ADDRESS}/24", "dev", "switch")
        _run("ip", "-n", self.switch, "link", "set", "switch", "up")
        if self.core:
            self._make_core()
        for number, host in enumerate(self.hosts):
            port = f"port{number}"
            _run(
                *("ip", "link", "add", "eth0", "netns", host, "type", "veth"),
                *("peer", "name", port, "netns", self.switch),
            )
            bridge = "second" if self.core and number >= len(self.hosts) // 2 else "switch"
            _run("ip", "-n", self.switch, "link", "set", port, "master", bridge, "up")
            address = f"{host_address(number)}/24"
            _run("ip", "-n", host, "address", "add", address, "dev", "eth0")
            _run("ip", "-n", host, "link", "set", "eth0", "up")
            self.limit(number, self.gigabits)

    def _make_core(self) -> None:
        inside = ("ip", "-n", self.switch, "link")
        _run(*inside, "add", "second", "type", "bridge")
        _run(*inside, "set", "second", "up")
        _run(*inside, "add", "core0", "type", "veth", "peer", "name", "core1")
        for device, bridge in (("core0", "switch"), ("core1", "second")):
            _run(*inside, "set", device, "master", bridge, "up")
            _limit(self.switch, device, self.core)

    def limit(self, number: int, gigabits: float) -> None:
        """Gives a host's link another rate, in both directions: what it sends, and what is sent to
        it."""
        _limit(self.hosts[number], "eth0", gigabits)
        _limit(self.switch, f"port{number}", gigabits)

    @property
    def driver_prefix(self) -> list[str]:
        return _inside(self.switch)

    @property
    def driver_environment(self) -> dict[str, str]:
        return {"SPARK_LOCAL_IP": SWITCH_ADDRESS}

    def host_prefix(self, number: int) -> list[str]:
        """Returns the words that run a command on a host."""
        return _inside(self.hosts[number])

    def conf(self, place: Path, before: str = "") -> dict[str, str]:
        """Returns the settings by which executors start on the hosts. A local-cluster's workers are
        in the driver and start the executors, so the program that they start moves an executor to
        the host with its number `id`. The shell runs the lines `before` in front of it."""
        place.mkdir(parents=True)
        host = f"{NETWORK}.$((2 + id))"
        java = launch.java_of_hosts(
            place,
            host,
            before=f"export SPARK_LOCAL_IP={host}\n{before}",
            prefix=" ".join([*_inside(f"faro-{os.getpid()}-$id"), ""]),
        )
        return {
            "spark.executorEnv.JAVA_HOME": str(java),
            "spark.driver.host": SWITCH_ADDRESS,
            "spark.driver.bindAddress": SWITCH_ADDRESS,
        }

    def carried(self) -> int:
        """Returns the bytes that the hosts have sent so far."""
        script = "cat /proc/net/dev"
        said = _run(*_inside(self.switch), "sh", "-c", script)
        received = 0
        for line in said.splitlines():
            name, _, figures = line.partition(":")
            if name.strip().startswith("port"):
                received += int(figures.split()[0])
        return received

    def probe(self) -> float:
        """Returns the rate of one connection from host to host, in Gbit/s."""
        address = host_address(0)
        server = subprocess.Popen(
            [*_inside(self.hosts[0]), "python3", "-c", PROBE_SERVER, address],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            port = server.stdout.readline().strip()
            seconds = str(PROBE_SECONDS)
            client = [*_inside(self.hosts[1]), "python3", "-c", PROBE_CLIENT]
            return float(_run(*client, address, port, seconds))
        finally:
            server.kill()
            server.wait()

    def close(self) -> None:
        """Removes the namespaces, and with them their devices."""
        for name in (*self.hosts, self.switch):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


@contextmanager
def linked(gigabits: float):
    """Yields links of this rate and the rate of one connection; None and None without a rate."""
    if not gigabits:
        yield None, None
        return
    link = Links(gigabits)
    try:
        yield link, link.probe()
    finally:
        link.close()


def host_address(number: int) -> str:
    return f"{NETWORK}.{2 + number}"


def _inside(namespace: str) -> list[str]:
    return ["nsenter", f"--net=/run/netns/{namespace}", "--"]


def _limit(namespace: str, device: str, gigabits: float) -> None:
    burst = max(MIN_BURST, int(gigabits * 1e9 / 8 / 1e3))
    _run(
        *("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "tbf"),
        *("rate", f"{gigabits * 1000:.0f}mbit", "burst", str(burst), "latency", QUEUE),
    )


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"'{' '.join(command)}' said: {done.stderr.strip()}")
    return done.stdout
