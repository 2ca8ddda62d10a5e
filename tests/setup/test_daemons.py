"""Daemons of the benchmarks end with the benchmark, and what a suite has started with the suite."""

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


# As a scenario that builds what it needs: the thread has no fixture that ends it.
SUITE = """
import subprocess
import threading
import time

def test_waits(tmp_path):
    command = f"echo $$ >{tmp_path}/part; mv {tmp_path}/part PID; sleep 600 & wait"
    threading.Thread(target=subprocess.run, args=(["sh", "-c", command],), daemon=True).start()
    time.sleep(600)
"""


def test_a_suite_that_is_terminated_leaves_nothing_running(tmp_path):
    suite, pid = tmp_path / "test_suite.py", tmp_path / "pid"
    suite.write_text(SUITE.replace("PID", str(pid)))
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    words = ["-B", "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, suite]
    program = subprocess.Popen([sys.executable, *words], cwd=tmp_path, stdout=subprocess.DEVNULL)
    awaited(pid.exists, "the test has not begun")
    started = [int(pid.read_text())]
    children = Path(f"/proc/{started[0]}/task/{started[0]}/children")
    awaited(children.read_text, "it has started nothing")
    started += map(int, children.read_text().split())
    program.send_signal(signal.SIGTERM)
    assert program.wait() == 128 + signal.SIGTERM
    awaited(lambda: not any(map(runs, started)), f"one of the processes {started} is left")
