"""Applications that run beside each other: who gets a processor when, and what is tried once more.

What is *wrong* is never tried again. What is *late*, that is, did not start or came to no end or
condition, runs once more, when all others have ended and with all processors; a busy machine makes
things late. If it is right then, it was flaky, which is reported.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from pathlib import Path

import processors
import spark_home

from . import class_archive, launch, scenarios, verdict

# From so many applications of a version on, an archive of its classes is worth making.
WORTH_AN_ARCHIVE = 5
# The logs of a first run that was late are beside those of the second.
LATE = "-late"
# Seconds for what removes the directories of applications that are ended.
CLEAN_UP = 4


@dataclass
class Jars:
    jobs: Path
    faro: Path | None


@dataclass
class Application:
    """A scenario on one Spark version, before and after it ran."""

    version: spark_home.Version
    scenario: scenarios.Scenario
    logs: Path
    outcome: launch.Outcome | None = None
    # Why there is no outcome, or what is wrong with how it ended.
    problem: str = ""
    # Why it was late, if nothing was wrong.
    late: str = ""
    # Why it was late the first time.
    late_before: str = ""
    reported: dict[str, list[verdict.Result]] = field(default_factory=dict)
    seconds: float = 0

    @property
    def name(self) -> str:
        return f"{self.version.name}-{self.scenario.name}"

    @property
    def halves(self) -> int:
        return processors.HALF if self.scenario.waits else processors.ONE

    def again(self) -> Application:
        """The same before it ran; its logs are moved out of the way."""
        kept = self.logs.with_name(self.logs.name + LATE)
        shutil.rmtree(kept, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.logs.rename(kept)
        return Application(self.version, self.scenario, self.logs, late_before=self.late)

    def run(self, jars: Jars, archive: Path | None) -> None:
        shutil.rmtree(self.logs, ignore_errors=True)
        started = time.monotonic()
        try:
            home = spark_home.ensure(self.version)
            self.outcome = launch.run(
                self.version, home, self.scenario, jars.jobs, jars.faro, self.logs, archive
            )
            self.problem = verdict.end_problem(self.outcome)
            for result in verdict.cases(self.outcome):
                self.reported.setdefault(result.name, []).append(result)
            if self.outcome.late and not verdict.wrong_before_late(self.scenario, self.outcome):
                self.late = self.outcome.late
        except launch.Late as error:
            self.problem = self.late = str(error)
        except (RuntimeError, OSError) as error:
            self.problem = str(error)
        self.seconds = time.monotonic() - started


class Running:
    """Runs applications in their order, as many at a time as there are processors for."""

    def __init__(self, applications: Iterable[Application], jars: Jars, at_once: int | None):
        self._applications = list(applications)
        self._jars = jars
        self._results: dict[str, Future[Application]] = {
            one.name: Future() for one in self._applications
        }
        self._many = Counter(one.version for one in self._applications)
        self._archives = {version: threading.Lock() for version in self._many}
        self._turns = threading.Semaphore(at_once or len(self._applications))
        self._late: list[Application] = []
        self._begun: list[Future[Application]] = []
        self._stopped = threading.Event()
        # Daemons: after an interrupt some still wait for processors.
        threading.Thread(target=self._fetch, daemon=True).start()
        threading.Thread(target=self._run_all, daemon=True).start()

    def result(self, name: str) -> Application:
        """The application when it has ended, the second time if there is one."""
        return self._results[name].result()

    def stop(self) -> list[Application]:
        """Ends what still runs, which cleans up; returns what had ended by itself."""
        self._stopped.set()
        ended = [one for one in self._results.values() if one.done() and not one.exception()]
        launch.stop_all()
        wait(self._begun, CLEAN_UP)
        return [one.result() for one in ended]

    def _fetch(self) -> None:
        # Who needs a version fetches it itself if this fails, and says why that fails.
        with contextlib.suppress(RuntimeError, OSError):
            for version in self._many:
                spark_home.ensure(version)

    def _run_all(self) -> None:
        # Two lines: who needs half of a processor does not wait for who needs one.
        lines: dict[int, list[Application]] = defaultdict(list)
        for one in self._applications:
            lines[one.halves].append(one)
        join([started(self._run_line, line) for line in lines.values()])
        for one in self._late:
            archive = self._archive(one)
            self._run(one.again(), processors.take(processors.ALL), archive)

    def _run_line(self, line: list[Application]) -> None:
        threads = []
        for one in line:
            with contextlib.ExitStack() as held:
                try:
                    self._turns.acquire()
                    held.callback(self._turns.release)
                    archive = self._archive(one)
                    held.enter_context(processors.take(one.halves))
                except (RuntimeError, OSError) as error:
                    self._results[one.name].set_exception(error)
                    continue
                threads.append(started(self._run, one, held.pop_all(), archive))
        join(threads)

    def _run(self, one: Application, processor, archive: Path | None) -> None:
        result = self._results[one.name]
        try:
            with processor:
                if self._stopped.is_set():
                    return
                self._begun.append(result)
                one.run(self._jars, archive)
        except BaseException as error:
            result.set_exception(error)
            raise
        first = not one.late_before
        if one.late and first and not one.scenario.late_is_red and not self._stopped.is_set():
            self._late.append(one)
        else:
            result.set_result(one)

    def _archive(self, one: Application) -> Path | None:
        if one.scenario.jvm_defaults or self._many[one.version] < WORTH_AN_ARCHIVE:
            return None
        # What keeps it from being made keeps the application from running, which says so.
        with self._archives[one.version], contextlib.suppress(RuntimeError, OSError):
            known = class_archive.found(one.version, self._jars.faro)
            if known:
                return known
            spark_home.ensure(one.version)
            with processors.take(processors.ONE):
                return class_archive.ensure(one.version, self._jars.faro, self._jars.jobs)
        return None


def started(work, *arguments) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


def join(threads: Iterable[threading.Thread]) -> None:
    for thread in threads:
        thread.join()
