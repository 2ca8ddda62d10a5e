"""Daemons of the benchmarks end with the benchmark."""

import signal
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
# It waits for a port that the daemon never opens.
STARTS = f"""
import sys
from pathlib import Path
sys.path[:0] = {[str(TESTS / part) for part in ("setup", "spark", "bench")]}
from measure import daemons
daemon = ["sh", "-c", "echo $$ >pid.part; mv pid.part pid; exec sleep 600"]
daemons.start([], Path(sys.argv[1]), "daemon", daemon, 1, None)
"""


def awaited(condition, what):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def runs(pid):
    """Whether there is such a process that is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_daemon_that_is_starting_ends_with_the_program(tmp_path):
    program = subprocess.Popen([sys.executable, "-B", "-c", STARTS, tmp_path])
    awaited((tmp_path / "pid").exists, "the daemon has not begun")
    pid = int((tmp_path / "pid").read_text())
    assert runs(pid)
    program.send_signal(signal.SIGKILL)
    program.wait()
    awaited(lambda: not runs(pid), f"the daemon, process {pid}, is left")
