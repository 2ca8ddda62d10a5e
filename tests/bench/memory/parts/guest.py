"""Builds the programs that measure and runs them, on this machine or in a guest with an RDMA
device."""

import json
import re
import subprocess

SKIPPED = 77


class Skipped(Exception):
    """A part cannot be measured on this machine; the message gives the reason."""


def here(command):
    """Runs a program on this machine and returns the figures that it prints."""
    done = subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}")
    return figures(done.stdout)


def on_device(root, command, memory="4G", timeout=900):
    """Runs a program in a guest with an RDMA device and returns the figures that it prints."""
    run = [
        root / "tests" / "softroce" / "run",
        "--hosts",
        "1",
        "--memory",
        memory,
        "--timeout",
        timeout,
        "--",
        *command,
    ]
    done = subprocess.run(
        [str(part) for part in run],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == SKIPPED:
        reasons = re.findall(r"^softroce: skipped: (.*)$", done.stderr + done.stdout, re.M)
        raise Skipped(reasons[-1] if reasons else "no guest with an RDMA device")
    if done.returncode:
        raise RuntimeError(f"the guest ended with {done.returncode}: {done.stderr[-2000:]}")
    return figures(done.stdout)


def figures(text):
    cells = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    if not cells:
        raise RuntimeError("the program printed no figures")
    return cells


def size(count):
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if count >= unit:
            return f"{count // unit} {name}"
    return f"{count} B"
