"""Executors in memory cgroups, as containers have them: what goes beyond the limit is killed."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from . import launch

V2 = Path("/sys/fs/cgroup")
V1 = V2 / "memory"
# Seconds between two looks at the memory in use, and at the heap in it, which walks page tables.
LOOK = 0.05
LOOK_AT_HEAP = 0.3
# The line of /proc/PID/smaps that begins a mapping.
MAPPING = re.compile(r"([0-9a-f]+)-[0-9a-f]+ ")
# In the JVM's log.
HEAP = re.compile(r"Heap address: (0x[0-9a-f]+), size: (\d+) MB")


@dataclass(frozen=True)
class Files:
    """The names that differ between the two versions of cgroups."""

    root: Path
    limit: str
    # The file that has a line `oom_kill N`.
    kills: str
    # Lines of memory.stat whose sum cannot be taken back from the group: what the kernel counts as
    # page cache can.
    resident: tuple[str, ...]


FILES = [
    Files(
        V2, "memory.max", "memory.events", ("anon", "shmem", "sock", "kernel_stack", "pagetables")
    ),
    Files(V1, "memory.limit_in_bytes", "memory.oom_control", ("rss", "shmem")),
]


def numbers(path):
    pairs = (line.split() for line in path.read_text().splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}


def resident(smaps, start, end):
    """Resident bytes of a process between two addresses, from its /proc/PID/smaps."""
    inside, total = False, 0
    for line in smaps.read_text().splitlines():
        if mapping := MAPPING.match(line):
            inside = start <= int(mapping[1], 16) < end
        elif inside and line.startswith("Rss:"):
            total += int(line.split()[1]) << 10
    return total


def found():
    """The files of this machine's memory cgroups, or why there are none."""
    why = "no cgroup of this machine has a memory controller"
    for files in FILES:
        try:
            if (
                files.root == V2
                and "memory" not in (V2 / "cgroup.subtree_control").read_text().split()
            ):
                continue
            probe = files.root / f"faro-probe-{os.getpid()}"
            probe.mkdir()
            try:
                (probe / files.limit).write_text(str(1 << 30))
                numbers(probe / files.kills)["oom_kill"]
                return files, ""
            finally:
                probe.rmdir()
        except (OSError, KeyError) as error:
            why = f"memory cgroups cannot be used here: {error!r}"
    return None, why


@dataclass
class Most:
    """The most bytes that one executor had resident: in all, and outside of Java's heap."""

    all: int = 0
    outside_heap: int = 0


class Groups:
    """The cgroups of one application's executors, by executor id."""

    def __init__(self, files, name, place, limit):
        """`limit`: of each, in bytes; `place`: for a java program that enters them."""
        self.files = files
        self.top = files.root / f"faro-{name}-{os.getpid()}"
        self.top.mkdir()
        if files.root == V2:
            (self.top / "cgroup.subtree_control").write_text("+memory")
        self.limit = limit
        self.place = place
        self.java_home = self._java(place)
        # By executor's group.
        self.most = {}
        self._ends = threading.Event()
        self._watch = threading.Thread(target=self._look_on, daemon=True)
        self._watch.start()

    def _java(self, place):
        """A JAVA_HOME whose java puts an executor into a group of its own, and exports nothing."""
        java = place / "java" / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(
            f"""#!/usr/bin/env bash
set -euo pipefail
words=("$@")
for i in "${{!words[@]}}"; do
  if [[ ${{words[i]}} == --executor-id ]]; then
    group={self.top}/executor-${{words[i + 1]}}
    mkdir "$group"
    echo {self.limit} > "$group/{self.files.limit}"
    echo $$ > "$group/cgroup.procs"
    set -- "-Xlog:gc+heap+coops=debug:file={place}/heap-${{group##*/}}" "$@"
  fi
done
exec {launch.java_program()} "$@"
"""
        )
        java.chmod(0o755)
        return java.parents[1]

    def _groups(self):
        return sorted(self.top.glob("executor-*"))

    def _look_on(self):
        heap_is_due = 0.0
        while not self._ends.wait(LOOK):
            with_heap = time.monotonic() >= heap_is_due
            for group in self._groups():
                try:
                    self._look_at(group, with_heap)
                except (OSError, ValueError):
                    continue  # The executor starts or has ended.
            if with_heap:
                heap_is_due = time.monotonic() + LOOK_AT_HEAP

    def _look_at(self, group, with_heap):
        stat = numbers(group / "memory.stat")
        now = sum(stat.get(name, 0) for name in self.files.resident)
        most = self.most.setdefault(group.name, Most())
        most.all = max(now, most.all)
        if with_heap:
            # The heap is looked at last: what it grows by in between is taken off too much.
            most.outside_heap = max(now - self._heap(group), most.outside_heap)

    def _heap(self, group):
        """Resident bytes of Java's heap in the group's processes."""
        start, mib = self._heap_range(group)
        end = start + (mib << 20)
        pids = (group / "cgroup.procs").read_text().split()
        return sum(resident(Path("/proc") / pid / "smaps", start, end) for pid in pids)

    def _heap_range(self, group):
        """Where the heap begins, and the most MiB that it can have."""
        found = HEAP.search((self.place / f"heap-{group.name}").read_text())
        if not found:
            raise ValueError("the JVM has not said where its heap is")
        return int(found[1], 16), int(found[2])

    def heaps(self):
        """The most MiB that each executor's heap can have."""
        return [self._heap_range(group)[1] for group in self._groups()]

    def max_bytes(self):
        """The most that an executor had since the start, in all and outside of the heap."""
        return Most(
            max((most.all for most in self.most.values()), default=0),
            max((most.outside_heap for most in self.most.values()), default=0),
        )

    def killed(self):
        """Executors in which the kernel has killed a process."""
        counts = {
            group.name: numbers(group / self.files.kills)["oom_kill"] for group in self._groups()
        }
        return [name for name, count in counts.items() if count]

    def started(self):
        return [group.name for group in self._groups()]

    def remove(self, seconds=20):
        """Ends what still runs in the groups, and removes them."""
        self._ends.set()
        self._watch.join()
        deadline = time.monotonic() + seconds
        for group in [*self._groups(), self.top]:
            while group.exists():
                for pid in (group / "cgroup.procs").read_text().split():
                    os.kill(int(pid), signal.SIGKILL)
                try:
                    group.rmdir()
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(LOOK)
