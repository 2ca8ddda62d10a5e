"""What all suites of `tests/bench/run` do in the same way: building what measures, and noting what
is said beside every measurement."""

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

from measure import machine

ROOT = Path(__file__).resolve().parents[2]
# All results are here as JSON, which `--report` reads.
TARGET = ROOT / "target" / "bench"
# The exit code of a suite that is not possible on this machine.
SKIPPED = 77


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def command(*name):
    """Returns the command of this measurement, of the suite's name and this program's options."""
    words = [*name, *(word for word in sys.argv[1:] if word not in ("--report", "--try"))]
    return (
        f"make bench SUITE={words[0]}"
        if len(words) == 1
        else shlex.join(["tests/bench/run", *words])
    )


class Watch:
    """Begins with a measurement and returns at its end what is stored beside its figures."""

    def __init__(self, *name, spark="-"):
        self._name = name
        self._facts = {**machine.describe(spark, ROOT), "load": os.getloadavg()[0]}
        self._started, self._others = time.monotonic(), machine.OthersWatch()

    def about(self):
        return {
            "machine": {**self._facts, "others": self._others.share()},
            "command": command(*self._name),
            "seconds": time.monotonic() - self._started,
        }


def built(package, name, kind="bench", release=True):
    """Builds a program of a crate, a benchmark driver if nothing else is said, and returns its path
    as Cargo reports it."""
    words = ["cargo", "build", "--locked", "-p", package, f"--{kind}", name]
    words += ["--release"] if release else []
    words.append("--message-format=json-render-diagnostics")
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"cargo could not build the {kind} {name} of {package}, see above")
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == name:
            return Path(message["executable"])
    raise RuntimeError(f"cargo built no {kind} {name}")
