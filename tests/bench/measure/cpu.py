"""CPU time of other processes, to the nanosecond where the kernel gives it; bytes on loopback."""

import re
import time
from pathlib import Path


def process_nanos(pid):
    """User and system time of all threads of a process, ended ones included."""
    # The clock id of another process's CPU time, as clock_getcpuclockid(3) makes it;
    # /proc/<pid>/stat counts in ticks of 10 ms, which is too coarse for a measurement of half a
    # second.
    return time.clock_gettime_ns((~pid << 3) | 2)


def resident_bytes(pid):
    """Memory of a process, shared memory that it has touched included."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s*(\d+) kB", status).group(1)) << 10


def loopback_bytes():
    """What the loopback device has carried so far, of all processes."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, figures = line.partition(":")
        if name.strip() == "lo":
            return int(figures.split()[0])
    raise RuntimeError("/proc/net/dev has no lo")


def thread_nanos(pid):
    """CPU time by thread name; numbers at the end are dropped, so that pools are one entry."""
    times = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            name = re.sub(r"([-_ #]\d+)*[-_ #]?$", "", (task / "comm").read_text().strip())
            spent = int((task / "schedstat").read_text().split()[0])
        except (OSError, IndexError, ValueError):
            continue  # the thread ended while it was looked at
        times[name] = times.get(name, 0) + spent
    return times


def compiler_nanos(pid):
    """CPU time of the JIT compilers of a JVM."""
    return sum(spent for name, spent in thread_nanos(pid).items() if "CompilerThre" in name)


def spent(before, after):
    """What each thread name spent in between, the largest first."""
    used = {name: after[name] - before.get(name, 0) for name in after}
    return dict(sorted(((n, v) for n, v in used.items() if v > 0), key=lambda e: -e[1]))
