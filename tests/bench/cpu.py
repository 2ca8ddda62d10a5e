"""CPU time of other processes, in nanoseconds if the kernel reports them, and bytes on loopback."""

import re
import time
from pathlib import Path


def process_nanos(pid):
    """Returns the user and system time of all threads of a process, including those that have
    ended."""
    # This is the clock id of another process's CPU time, as clock_getcpuclockid(3) makes it.
    # /proc/<pid>/stat counts in ticks of 10 ms, which is too coarse for a measurement of half a
    # second.
    return time.clock_gettime_ns((~pid << 3) | 2)


def resident_bytes(pid):
    """Returns the resident memory of a process, including shared memory that it has touched."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s*(\d+) kB", status).group(1)) << 10


def loopback_bytes():
    """Returns the bytes that the loopback device has carried so far, for all processes."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, figures = line.partition(":")
        if name.strip() == "lo":
            return int(figures.split()[0])
    raise RuntimeError("/proc/net/dev has no lo")


def thread_nanos(pid):
    """Returns CPU time by thread name. Final numbers are dropped, so that a pool is one entry."""
    times = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            name = re.sub(r"([-_ #]\d+)*[-_ #]?$", "", (task / "comm").read_text().strip())
            spent = int((task / "schedstat").read_text().split()[0])
        except (OSError, IndexError, ValueError):
            continue  # The thread has ended meanwhile.
        times[name] = times.get(name, 0) + spent
    return times


def compiler_nanos(pid):
    """Returns the CPU time of a JVM's JIT compilers."""
    return sum(spent for name, spent in thread_nanos(pid).items() if "CompilerThre" in name)
