"""The compose cluster as a test sees it: up, a job, a worker that is killed, down."""

import re
import subprocess
import threading
import time
from pathlib import Path

from engine import ROOT, compose_command

DOCKER = ROOT / "docker"
UP_LIMIT = 600  # seconds
JOB_LIMIT = 900


class Cluster:
    def __init__(self, engine, profile, logs, variables=None):
        self.engine = engine
        self.logs = Path(logs)
        self.worker = {"tcp": "worker", "softroce": "rdma-worker"}[profile]
        # Empty: any free port of the host.
        self.variables = {"FARO_MASTER_UI": "", "FARO_HISTORY_UI": "", **(variables or {})}
        self.base = [*compose_command(), "--profile", profile]

    def compose(self, *words):
        return subprocess.run(
            [*self.base, *words],
            cwd=DOCKER,
            stdin=subprocess.DEVNULL,
            env={**self.engine.environment, **self.variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def up(self):
        """Starts all services and waits until each of them says that it is healthy."""
        done = self.compose("up", "-d", "--no-build")
        if done.returncode:
            raise RuntimeError(f"compose up: {(done.stdout + done.stderr)[-2000:]}")
        end = time.monotonic() + UP_LIMIT
        while True:
            states = self.states()
            if states and set(states.values()) == {"healthy"}:
                return states
            if time.monotonic() > end or "exited" in states.values():
                raise RuntimeError(f"not healthy within {UP_LIMIT} s: {states}")
            time.sleep(0.5)

    def states(self):
        """Container name -> its health, or its state where it has none."""
        form = (
            "{{.Name}} {{if .State.Health}}{{.State.Health.Status}}{{else}}none{{end}} "
            "{{.State.Status}}"
        )
        names = self.compose("ps", "-q").stdout.split()
        if not names:
            return {}
        rows = [
            row.split()
            for row in self.engine.must("docker", "inspect", "-f", form, *names).splitlines()
        ]
        return {
            name.lstrip("/"): "exited" if state == "exited" else health
            for name, health, state in rows
        }

    def workers(self):
        return self.compose("ps", "-q", self.worker).stdout.split()

    def submit(self, name, *arguments, on_line=None, **variables):
        """Runs the job; `on_line` sees every line as it comes. The exit code and the output."""
        words = [part for key, value in variables.items() for part in ("-e", f"{key}={value}")]
        process = subprocess.Popen(
            [*self.base, "run", "--rm", "-T", *words, "submit", "submit", *arguments],
            cwd=DOCKER,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**self.engine.environment, **self.variables},
        )
        timer = threading.Timer(JOB_LIMIT, process.kill)
        timer.start()
        lines = []
        try:
            with (self.logs / f"{name}.log").open("w") as log:
                for line in process.stdout:
                    log.write(line)
                    log.flush()
                    lines.append(line)
                    if on_line:
                        on_line(line)
            return process.wait(), "".join(lines)
        finally:
            timer.cancel()

    def keep_logs(self, name):
        done = self.compose("logs", "--no-color")
        (self.logs / f"{name}-services.log").write_text(done.stdout + done.stderr)
        for number, worker in enumerate(self.workers(), 1):
            # Executors log into files of their own.
            found = self.engine.call(
                "docker", "exec", worker, "bash", "-c", "cat /var/spark/work/*/*/stderr"
            )
            (self.logs / f"{name}-executors-{number}.log").write_text(found.stdout)

    def down(self):
        self.compose("down", "-v", "--timeout", "5")


def figures(output):
    """The figures that the job printed: {"tcp": bytes, ..., "all": bytes, "fallbacks": n, ...}."""
    found = {
        name: int(number)
        for name, number in re.findall(r"^Faro (\w+) +\d+ +(\d+)$", output.replace("\r", ""), re.M)
    }
    for name, pattern in (
        ("all", r"^all, by Spark +(\d+)$"),
        ("fallbacks", r"own fetch: (\d+)$"),
        ("lost", r"^executors lost: (\d+)"),
        ("repeated", r"run again: (\d+)$"),
    ):
        match = re.search(pattern, output.replace("\r", ""), re.M)
        found[name] = int(match[1]) if match else -1
    return found
