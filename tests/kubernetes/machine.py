"""A machine that the cluster runs on: mount, process, IPC, host-name, cgroup and network
namespaces of its own. Bridges, mounts, iptables' rules and processes are gone when its process 1
ends; cgroups are removed then."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CGROUPS = Path("/sys/fs/cgroup")
NEEDED = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "pids", "blkio", "systemd")
# Of its cgroups, with its host name and the process id of the run.
NAME = "faro-kubernetes"


class NotPossible(Exception):
    """Why no cluster can be started here."""


def controllers():
    """The cgroup v1 hierarchies of this machine that the cluster uses."""
    return [name for name in NEEDED if (CGROUPS / name / "cgroup.procs").exists()]


def why_not():
    """The exact reason why no cluster can be started here; empty: it can be tried."""
    if os.getuid() != 0:
        return "needs root, for namespaces, mounts and cgroups"
    if os.uname().machine != "x86_64":
        return f"needs x86-64; this is {os.uname().machine}"
    missing = [name for name in NEEDED[:7] if name not in controllers()]
    if missing:
        return (
            f"needs cgroup v1 hierarchies under {CGROUPS}; missing: {', '.join(missing)} "
            "(cgroup v2 alone was not tried)"
        )
    words = ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--cgroup", "--fork", "true"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"namespaces cannot be made: {done.stderr.strip()}"
    if "overlay" not in Path("/proc/filesystems").read_text():
        return "the kernel has no overlayfs"
    return ""


def remove_group(top):
    """Ends what is in it, and removes what is empty by now."""
    for place, _, _ in os.walk(top, topdown=False):
        with contextlib.suppress(OSError, ValueError):
            for pid in Path(place, "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(OSError):
            Path(place).rmdir()


def remove_left_over(names):
    """The groups of runs that were killed."""
    for name in names:
        for group in (CGROUPS / name).glob(f"{NAME}-*"):
            if not Path("/proc", group.name.rpartition("-")[2]).exists():
                remove_group(group)


class Machine:
    """`packages`: the root of what Debian's packages have, seen below /usr."""

    def __init__(self, place, packages, host, address):
        self.place = Path(place)
        self.packages = packages
        self.host, self.address = host, address
        self.name = f"{NAME}-{host}-{os.getpid()}"
        self.controllers = controllers()
        self.leader = None
        self.init = None

    def start(self):
        self.place.mkdir(parents=True)
        remove_left_over(self.controllers)
        for name in self.controllers:
            self._make_group(CGROUPS / name / self.name)
        self.leader = subprocess.Popen(
            [
                *self.entering(),
                # The machine ends with this program, however that ends.
                *("setpriv", "--pdeathsig", "SIGKILL"),
                *("unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--cgroup"),
                *("--fork", "--kill-child=SIGKILL"),
                *(sys.executable, HERE / "machine-init"),
                *(self.place, self.address, self.packages),
                *self.controllers,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        said = self.leader.stdout.readline().strip()
        if said != "ready":
            raise NotPossible(said or f"the machine did not start: exit code {self.leader.wait()}")
        children = Path(f"/proc/{self.leader.pid}/task/{self.leader.pid}/children")
        self.init = int(children.read_text().split()[0])
        self.run("hostname", self.host)
        names = f"127.0.0.1 localhost\n{self.address} {self.host}\n"
        self.run("tee", "/etc/hosts", input=names)

    def join(self, other):
        """A cable between the two: both are of one network then."""
        here, there = f"to-{other.host}", f"to-{self.host}"
        # Without --pid: the peer's process id is one of this program's namespace.
        words = ["nsenter", "--target", str(self.init), "--net", "ip", "link", "add", here]
        words += ["type", "veth", "peer", "name", there, "netns", str(other.init)]
        subprocess.run(words, check=True)
        for machine, end in ((self, here), (other, there)):
            machine.run("ip", "link", "set", end, "master", "node0", "up")

    def _make_group(self, group):
        group.mkdir()
        for name in ("cpuset.cpus", "cpuset.mems"):
            if (group / name).exists():
                (group / name).write_text((group.parent / name).read_text())
        if (group / "memory.use_hierarchy").exists():
            with contextlib.suppress(OSError):
                (group / "memory.use_hierarchy").write_text("1")

    def entering(self):
        """In front of a command: puts it into the machine's cgroups, which `stop` empties."""
        groups = [str(CGROUPS / name / self.name / "cgroup.procs") for name in self.controllers]
        script = f'for group in {" ".join(groups)}; do echo $$ > $group; done; exec "$@"'
        return ["sh", "-e", "-c", script, "enter"]

    def command(self, words):
        """`words` on the machine."""
        enter = [*self.entering(), "nsenter", "--target", str(self.init)]
        enter += ["--mount", "--pid", "--net", "--ipc", "--uts", "--cgroup"]
        return [*enter, *map(str, words)]

    def start_process(self, words, **options):
        """A daemon."""
        return subprocess.Popen(
            self.command(words),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **options,
        )

    def run(self, *words, **options):
        done = subprocess.run(
            self.command(words),
            stdin=options.pop("stdin", subprocess.DEVNULL) if "input" not in options else None,
            capture_output=True,
            text=True,
            check=False,
            **options,
        )
        if done.returncode:
            words = " ".join(map(str, words))
            raise RuntimeError(f"{words}: {done.stderr.strip()[-2000:]}{done.stdout[-1000:]}")
        return done.stdout

    def stop(self, seconds=30):
        """Idempotent. Ends process 1, and with it all others and all mounts."""
        if self.leader and self.leader.poll() is None:
            os.killpg(self.leader.pid, signal.SIGKILL)
            self.leader.wait()
        deadline = time.monotonic() + seconds
        for name in self.controllers:
            top = CGROUPS / name / self.name
            while top.exists():
                remove_group(top)
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{top} cannot be removed within {seconds} s")
                time.sleep(0.05)
        shutil.rmtree(self.place, ignore_errors=True)
