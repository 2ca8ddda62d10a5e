"""A running Spark application that takes queries on its input, one at a time."""

import contextlib
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

from harness import launch, verdict

START_LIMIT = 120  # seconds
QUERY_LIMIT = 120


@dataclass
class Done:
    seconds: float
    remote_bytes: int
    fallbacks: int


class Application:
    def __init__(self, side, version, home, place, jar, tables, faro_jar, logs):
        self.side = side
        self.log = logs / f"{side}-driver.log"
        self.logs = logs
        self.home = launch.home_of_links(place / side, home)
        conf = {
            **launch.ALWAYS,
            "spark.local.dir": str(place / side / "local"),
            "spark.sql.shuffle.partitions": "32",
            # Both sides of every large join are shuffled; small dimensions are still sent.
            "spark.sql.autoBroadcastJoinThreshold": "2m",
        }
        command = launch.submit_command(
            self.home,
            version,
            f"faro-demo-{side}",
            conf,
            faro_jar,
            ["io.faro.demo.DemoApp", jar, tables],
        )
        self.answers = queue.Queue()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=place,
                env=launch.environment_for(self.home),
                start_new_session=True,
            )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("DEMO "):
                self.answers.put(line.strip())
        self.answers.put(None)

    def _answer(self, seconds, wanted):
        try:
            line = self.answers.get(timeout=seconds)
        except queue.Empty:
            sys.exit(f"\ndemo: no answer from {self.side} within {seconds} s; see {self.log}")
        if line is None or not line.startswith(wanted):
            self._show_log()
            sys.exit(f"\ndemo: {self.side}: {line or 'the application ended'}; see {self.log}")
        return line

    def _show_log(self):
        lines = self.log.read_text(errors="replace").splitlines()
        errors = [line for line in lines if re.search(r"ERROR|Exception", line)]
        print("\n" + "\n".join((errors or lines)[-15:]), file=sys.stderr)

    def await_ready(self):
        self._answer(START_LIMIT, "DEMO READY")

    def run(self, query, output):
        self.process.stdin.write(f"{query}\t{output}\n")
        self.process.stdin.flush()
        _, _, seconds, counted = self._answer(QUERY_LIMIT, "DEMO DONE").split(" ", 3)
        counters = {k: float(v) for k, v in re.findall(r"([\w.]+)=(-?[\d.]+(?:E-?\d+)?)", counted)}
        return Done(
            float(seconds),
            verdict.total(counters, "remoteBytes"),
            verdict.total(counters, "fallbacks"),
        )

    def stop(self):
        """Ends the application by closing its input, by force when that takes too long."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        deadline = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        launch.stop_group(self.process, launch.EXECUTORS_END if self.process.poll() == 0 else 0)
        for stderr in (self.home / "work").glob("app-*/*/stderr"):
            shutil.copy(stderr, self.logs / f"{self.side}-executor-{stderr.parent.name}.log")
