"""What a figure was measured on."""
import datetime
import os
import platform
import re
import subprocess
from pathlib import Path


def describe(spark, root):
    kilobytes = _first(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    return {
        "cpu": _first(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text()),
        "cores": len(os.sched_getaffinity(0)),
        "memory": f"{int(kilobytes) >> 20} GiB",
        "kernel": platform.release(),
        "jdk": _first(r'version "([^"]*)"', _output(["java", "-version"])),
        "spark": spark,
        "revision": _output(["git", "-C", str(root), "describe", "--always", "--dirty"]).strip(),
        "date": datetime.date.today().isoformat(),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _output(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    return done.stdout


def _first(pattern, text):
    found = re.search(pattern, text)
    return found.group(1).strip() if found else "?"
