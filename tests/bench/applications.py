"""Applications of Spark on a local-cluster: one for each side, each obeying the commands of
workloads/. Nothing else knows how they are started, asked and measured."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import answers
import cpu
import sides as known
from harness import launch
from harness.conversation import Broken, Conversation
from results import NAMES, TARGET, say

HERE = Path(__file__).resolve().parent
FARO_COUNTERS = HERE.parent / "spark" / "jobs" / "io" / "faro" / "e2e" / "FaroCounters.java"
ANSWER_FILE = HERE.parent / "tpcds" / "AnswerFile.java"
TMPFS = Path("/dev/shm")
START_SECONDS, RUN_SECONDS = 180, 480
# For the first tasks of an application.
EXECUTORS_SECONDS = 90

ALWAYS = {
    "spark.executor.memory": "1g",
    "spark.shuffle.readHostLocalDisk": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
FIGURES = {
    "job s": ("jobMillis", 1e3),
    "reduce stage s": ("reduceMillis", 1e3),
    "fetch wait s": ("fetchWaitMillis", 1e3),
    "remote blocks": ("remoteBlocks", 1),
    "remote MB": ("remoteBytes", 1e6),
    "MB written": ("writtenBytes", 1e6),
    "MB spilled": ("spilledBytes", 1e6),
    # Of jobs whose executors are killed, or come and go.
    "map tasks": ("mapTasks", 1),
    "computed again": ("againTasks", 1),
    "executor-seconds": ("executorMillis", 1e3),
    "executors at most": ("mostExecutors", 1),
    "at the end": ("leftExecutors", 1),
}


@dataclass
class Group:
    """Workloads that share the sides' applications."""

    # The application's command that runs each workload, by the workload's name.
    commands: dict[str, str]
    conf: dict[str, str] = field(default_factory=dict)
    # Commands that an application obeys before the first workload.
    prepare: list[str] = field(default_factory=list)
    # True if tasks read everything that was fetched for them. If a join or a LIMIT ends a task
    # early, Faro has delivered blocks that Spark's metrics, which count what was read, leave out.
    reads_all: bool = True
    # Where the sides' answers go, to be compared with stock Spark's.
    answers: Path | None = None
    # Shuffle files are below it.
    scratch: Path = TMPFS
    link: object = None
    executors: int = 2
    # Of a worker, MiB; its executor's heap is that of ALWAYS.
    memory: int = 2048
    # Executors come and go: no process is known by its id.
    elastic: bool = False
    # Settings of single sides.
    of_side: dict[str, dict] = field(default_factory=dict)


def compiled(home: Path) -> Path:
    classes, jar = TARGET / "workload-classes", TARGET / "workloads.jar"
    shutil.rmtree(classes, ignore_errors=True)
    classes.mkdir(parents=True)
    sources = [*sorted((HERE / "workloads").rglob("*.java")), FARO_COUNTERS, ANSWER_FILE]
    words = ["javac", "-nowarn", "-Xlint:none", "-cp", f"{home}/jars/*", "-d", classes, *sources]
    subprocess.run([str(word) for word in words], check=True)
    subprocess.run(["jar", "cf", str(jar), "-C", str(classes), "."], check=True)
    return jar


class Application:
    """The application of a side, with its daemons if it has some."""

    def __init__(self, name: str, group: Group):
        self.side, self._group = name, group
        self.daemons = self._talk = None
        self._pids: list[int] = []

    def start(self, home: Path, faro_jar: Path, place: Path) -> None:
        side, group, name = known.all_sides(faro_jar, home.name)[self.side], self._group, self.side
        self.faro = side.faro
        self._logs = TARGET / "spark-logs" / "-".join([*group.commands][:3])
        self._logs.mkdir(parents=True, exist_ok=True)
        self._home = launch.home_of_links(place, home)
        (place / "local").mkdir()
        link = group.link
        if side.daemons:
            self.daemons = side.daemons(side.home, place, home, group.executors, link)
        conf = {**ALWAYS, **group.conf, **group.of_side.get(name, {}), **side.conf}
        conf["spark.local.dir"] = str(place / "local")
        conf.update(self.daemons.conf if self.daemons else {})
        if link:
            conf.update(link.conf(place / "java", self.daemons.before if self.daemons else ""))
        jar = compiled_once(home)
        jars = side.jars()
        command = launch.spark_submit(
            self._home,
            f"local-cluster[{group.executors},1,{group.memory}]",
            f"faro-bench-{name}",
            conf,
            ["io.faro.bench.WorkloadApp", jar],
            *("--driver-memory", "1g"),
            jars=jars,
            # Before 4.0 the shuffle manager is made before --jars are loaded.
            jars_first=jars if home.name.startswith("3.") else (),
        )
        self._talk = Conversation(
            f"Spark application {name}",
            [*(link.driver_prefix if link else []), *command],
            self._logs / f"{name}-driver.log",
            keep="BENCH ",
            cwd=place,
            env={**launch.environment_for(self._home), **(link.driver_environment if link else {})},
        )

    def ask(self, line: str, seconds: float = RUN_SECONDS) -> str:
        word, _, said = self._talk.ask(line, seconds).partition(" ")
        if word != "done":
            raise RuntimeError(f"{line}: {said}")
        return said

    def await_ready(self) -> None:
        if self._talk.answer(START_SECONDS) != "ready":
            raise Broken(f"{self.side} did not start")
        for line in self._group.prepare:
            self.ask(line)
        self.find_executors()

    def find_executors(self) -> None:
        wanted = 1 if self._group.elastic else self._group.executors
        said = self.ask(f"executors {wanted}", EXECUTORS_SECONDS)
        self._pids = [] if self._group.elastic else [int(pid) for pid in said.split()]

    def run(self, command: str) -> dict:
        """The figures of a command, with the CPU of the processes that are there all the time."""
        daemons = self.daemons.pids if self.daemons else []
        link, beside = self._group.link, [self._talk.pid, *daemons]
        killed = command.startswith("killed")
        before = {pid: cpu.process_nanos(pid) for pid in [*([] if killed else self._pids), *beside]}
        carried = link.carried() if link else 0
        wire = cpu.loopback_bytes()
        said = self.ask(command)
        wire = cpu.loopback_bytes() - wire
        found = {name: int(value) for name, value in re.findall(r"(\w+)=(-?\d+)", said)}
        record = {name: found[key] / by for name, (key, by) in FIGURES.items() if key in found}
        if link:
            record["MB over the links"] = (link.carried() - carried) / 1e6
        if self._group.elastic or killed:
            return record
        try:
            spent = {pid: (cpu.process_nanos(pid) - had) / 1e9 for pid, had in before.items()}
        except OSError:
            raise RuntimeError(f"an executor ended during '{command}'") from None
        record["executors' CPU s"] = sum(spent[pid] for pid in self._pids)
        record["everybody's CPU s"] = sum(spent.values())
        record["loopback MB"] = wire / 1e6
        if daemons:
            record["daemons' CPU s"] = sum(spent[pid] for pid in daemons)
            record["daemons' MB"] = sum(map(cpu.resident_bytes, daemons)) / 1e6
        return record

    def counters(self) -> dict[str, float]:
        if not self.faro:
            return {}
        pairs = re.findall(r"([\w.]+)=(-?[\d.]+(?:E-?\d+)?)", self.ask("counters"))
        return {name: float(value) for name, value in pairs}

    def stop(self) -> None:
        if self._talk:
            self._talk.stop(launch.EXECUTORS_END)
        if self.daemons:
            self.daemons.stop()
        for stderr in (self._home / "work").glob("app-*/*/stderr") if self._talk else ():
            shutil.copy(stderr, self._logs / f"{self.side}-executor-{stderr.parent.name}.log")


_compiled: dict[Path, Path] = {}


def compiled_once(home: Path) -> Path:
    if home not in _compiled:
        _compiled[home] = compiled(home)
    return _compiled[home]


class Sides:
    """The applications of a group. One that breaks is left out, with a record that says why."""

    def __init__(self, applications: list[Application], failed: list[dict]):
        self._all, self._failed, self._turn = applications, failed, 0

    def turn(self) -> list[Application]:
        """All that still work; each time another one is the first."""
        self._turn += 1
        broken = {record["side"] for record in self._failed}
        there = [one for one in self._all if NAMES[one.side] not in broken]
        at = self._turn % max(1, len(there))
        return [*there[at:], *there[:at]]

    @contextmanager
    def guarded(self, application: Application, **what) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            self._failed.append({**what, "side": NAMES[application.side], "failed": str(error)})

    def failures(self) -> list[dict]:
        """Those since the last call."""
        fresh = [record for record in self._failed if "said" not in record]
        for record in fresh:
            record["said"] = True
        return [{k: v for k, v in record.items() if k != "said"} for record in fresh]


@contextmanager
def started(options, group: Group, names: list[str]) -> Iterator[Sides]:
    """The sides' applications, ready to be asked; all of them end with this context."""
    failed: list[dict] = []
    with ExitStack() as stack:
        place = Path(tempfile.mkdtemp(prefix="faro-bench-", dir=group.scratch))
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        applications = []
        for name in names:
            try:
                one = Application(name, group)
                stack.callback(one.stop)
                one.start(options.home, options.jar, place / name)
                applications.append(one)
            except RuntimeError as error:
                failed.append({"side": NAMES[name], "failed": str(error)})
        say(f"applications of {', '.join(group.commands)}: {', '.join(names)}")
        sides = Sides(applications, failed)
        for one in applications:
            with sides.guarded(one):
                one.await_ready()
        yield sides


def measured(sides: Sides, group: Group, warm_ups: int, rounds: int, **more) -> Iterable[dict]:
    """Yields a record for each round of each workload and side. `more` is in each of them."""
    for name, command in group.commands.items():
        before, remote = {}, {}
        for number in range(warm_ups + rounds):
            for one in sides.turn():
                with sides.guarded(one, workload=name):
                    if number == warm_ups:
                        before[one.side] = one.counters()
                    asks = command
                    if group.answers and number == max(0, warm_ups - 1):
                        asks = f"{command.replace('read ', 'digest ')} {answer(group, name, one)}"
                    record = one.run(asks)
                    one.ask("clean")
                    if number < warm_ups:
                        continue
                    sums = remote.setdefault(one.side, [0, 0.0])
                    sums[0] += record["remote blocks"]
                    sums[1] += record["remote MB"] * 1e6
                    yield {"workload": name, "side": NAMES[one.side], **more, **record}
            yield from sides.failures()
        for one in sides.turn():
            with sides.guarded(one, workload=name):
                counted = {
                    key: value - before[one.side].get(key, 0)
                    for key, value in one.counters().items()
                }
                through_faro(counted, *remote[one.side], group.reads_all)
        yield from sides.failures()


def through_faro(counted: dict, blocks: float, size: float, exactly: bool) -> None:
    """Raises if Faro counted less than the remote blocks and bytes that Spark did, or fell back."""
    for key, spark in (("remoteBlocks.", blocks), ("remoteBytes.", size)):
        ours = sum(value for name, value in counted.items() if name.startswith(key))
        if counted and (ours < spark - 1 or (exactly and ours > spark + 1)):
            raise RuntimeError(f"Spark counted {spark:.0f} {key}, Faro {ours:.0f}")
    if counted.get("fallbacks"):
        raise RuntimeError(f"{counted['fallbacks']:.0f} fall-backs")


def answer(group: Group, name: str, application: Application) -> Path:
    group.answers.mkdir(parents=True, exist_ok=True)
    return group.answers / f"{name}.{application.side}"


def compared(group: Group) -> Iterable[dict]:
    """Yields a failure for each side whose answer is not stock Spark's."""
    for stock in sorted(group.answers.glob("*.stock")):
        for ours in sorted(stock.parent.glob(f"{stock.stem}.*")):
            wrong = answers.difference(stock, ours, may_be_empty=True) if ours != stock else None
            if wrong:
                side = NAMES[ours.suffix[1:]]
                yield {"workload": stock.stem, "side": side, "failed": f"another answer: {wrong}"}


def measure(options, group: Group, names: list[str], warm_ups: int, **more) -> Iterable[dict]:
    """The records of a group of workloads by sides that take turns."""
    with started(options, group, names) as sides:
        yield from measured(sides, group, warm_ups, options.rounds, **more)
    if group.answers:
        yield from compared(group)


def chosen(options, names: list[str]) -> list[str]:
    """The sides that are asked for and installed here."""
    every = known.all_sides(options.jar, options.version)
    here = [name for name in names if not every[name].needs_home or every[name].home]
    for name in set(names) - set(here):
        say(f"left out: {name}, which needs {every[name].needs_home}")
    return here


def warm(folder: Path) -> None:
    """Reads all files below the folder, so that they are in the page cache."""
    buffer = bytearray(8 << 20)
    for path in sorted(folder.rglob("*")):
        with suppress(IsADirectoryError), path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
