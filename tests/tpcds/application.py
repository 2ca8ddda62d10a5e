"""A running QueryApp (see QueryApp.java): it answers queries, one at a time, into files."""

import contextlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from harness import build, launch, verdict
from harness.conversation import Broken, Conversation

HERE = Path(__file__).resolve().parent
COUNTERS = HERE.parent / "spark" / "jobs" / "io" / "faro" / "e2e" / "FaroCounters.java"
CLASSES = ("QueryApp", "AnswerFile", "PlanText", "TaskTimes")
START_LIMIT = 600  # seconds
PLAIN_ANSWER = 30


class Failed(RuntimeError):
    """A query that ended in an error; the application takes the next one."""


@dataclass
class Done:
    seconds: float
    rows: int
    # Of all tasks, and of these what Spark counts as waiting for fetches and writing shuffle files.
    task_seconds: float
    shuffle_seconds: float
    # What Faro's executors counted in the meantime; empty without Faro.
    counters: dict

    def counted(self, name):
        return verdict.total(self.counters, name)


def jar(version):
    """The application, compiled against the Spark that runs it."""
    return build.java_jar(
        f"queries-{version.name}",
        [*(HERE / f"{name}.java" for name in CLASSES), COUNTERS],
        against=version.name,
    )


class Application:
    def __init__(
        self,
        side,
        version,
        home,
        place,
        tables,
        faro_jar,
        logs,
        conf,
        memory=1024,
        cores=1,
        **environment,
    ):
        """`place`: for its files, which are removed with it; `environment`: of launch."""
        self.side = side
        self.log = logs / f"{side}-driver.log"
        self.logs = logs
        self.home = launch.home_of_links(place / side, home)
        (place / side / "local").mkdir()
        command = launch.submit_command(
            self.home,
            version,
            f"faro-queries-{side}",
            {**launch.ALWAYS, "spark.local.dir": str(place / side / "local"), **conf},
            faro_jar,
            ["io.faro.tpcds.QueryApp", jar(version), tables],
            memory=memory,
            cores=cores,
        )
        self.talk = Conversation(
            side,
            command,
            self.log,
            keep="QUERY ",
            cwd=place,
            env=launch.environment_for(self.home, **environment),
        )

    def await_ready(self):
        if self.talk.answer(START_LIMIT) != "ready":
            raise Broken(f"{self.side} did not start; see {self.log}")

    def configure(self, key, value):
        """A setting of the SQL session, for the queries that follow."""
        self._ask("conf", key, value, seconds=PLAIN_ANSWER)

    def run(self, query, output, seconds):
        """Raises Failed, or Broken if there is no answer within `seconds`."""
        said = self._ask("run", query, output, seconds=seconds)
        time, rows, tasks, shuffle, counted = said.split(" ", 4)
        counters = {k: float(v) for k, v in re.findall(r"([\w.]+)=(-?[\d.]+(?:E-?\d+)?)", counted)}
        return Done(float(time), int(rows), float(tasks), float(shuffle), counters)

    def executor_pids(self):
        """Found by their command lines, which name this application's own home."""
        found = []
        for line in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = line.read_text(errors="replace")
                if "CoarseGrainedExecutorBackend" in words and f"{self.home}/" in words:
                    found.append(int(line.parent.name))
        return found

    def _ask(self, *words, seconds):
        answer, _, rest = self.talk.ask("\t".join(map(str, words)), seconds).partition(" ")
        if answer != "done":
            raise Failed(f"{self.side}: {rest}; see {self.log}")
        return rest

    def errors(self):
        """The last lines of the driver's log that tell of an error, or its last lines."""
        lines = self.log.read_text(errors="replace").splitlines()
        return ([line for line in lines if re.search(r"ERROR|Exception", line)] or lines)[-15:]

    def stop(self):
        """Ends the application by closing its input, by force when that takes too long."""
        self.talk.stop(30 + launch.EXECUTORS_END)
        for stderr in (self.home / "work").glob("app-*/*/stderr"):
            shutil.copy(stderr, self.logs / f"{self.side}-executor-{stderr.parent.name}.log")
