"""Describes the machine that a figure was measured on."""

import ctypes
import datetime
import os
import platform
import re
import resource
import subprocess
from pathlib import Path


def describe(root):
    kilobytes = _first(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    return {
        "cpu": _first(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text()),
        "cores": len(os.sched_getaffinity(0)),
        "memory": f"{int(kilobytes) >> 20} GiB",
        "kernel": platform.release(),
        "jdk": _first(r'version "([^"]*)"', _output(["java", "-version"])),
        "revision": _output(["git", "-C", str(root), "describe", "--always", "--dirty"]).strip(),
        "date": datetime.date.today().isoformat(),
    }


# The value is that of <linux/prctl.h>.
PR_SET_CHILD_SUBREAPER = 36


class OthersWatch:
    """Measures the share of the machine that other processes have used since this was made."""

    def __init__(self):
        # Executors outlive their driver. As children of this process, for which a conversation's
        # end waits, they are counted as its own.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._busy, self._all = _ticks()
        self._ours = _own_seconds()

    def share(self):
        """Returns the share of all cores' time. Call it after this process's children have ended
        and have been waited for."""
        busy, total = _ticks()
        per_second = os.sysconf("SC_CLK_TCK")
        others = (busy - self._busy) / per_second - (_own_seconds() - self._ours)
        return max(0.0, others / max(1e-9, (total - self._all) / per_second))


def _ticks():
    """Returns the busy ticks and all ticks of all cores."""
    values = [int(v) for v in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    idle = values[3] + values[4]
    return sum(values) - idle, sum(values)


def _own_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def _output(command):
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.stdout


def _first(pattern, text):
    found = re.search(pattern, text)
    return found.group(1).strip() if found else "?"
