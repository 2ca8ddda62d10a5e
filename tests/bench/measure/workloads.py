"""The Spark workloads and TPC-DS: one application for each side; all of them live at once and take
turns."""

import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harness import launch
from harness.conversation import Broken, Conversation

from . import cpu
from . import sides as known

HERE = Path(__file__).resolve().parents[1]
FARO_COUNTERS = HERE.parent / "spark" / "jobs" / "io" / "faro" / "e2e" / "FaroCounters.java"
ANSWER_FILE = HERE.parent / "tpcds" / "AnswerFile.java"
TMPFS = Path("/dev/shm")
START_SECONDS = 180
RUN_SECONDS = 240
# For the first tasks of an application.
EXECUTORS_SECONDS = 90
EXECUTORS = 2
# Of a worker; its executor's heap is Spark's default, see ALWAYS.
EXECUTOR_MEMORY = 2048

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


@dataclass
class Group:
    """Workloads that share the sides' applications."""

    # The application's command that runs each workload, by the workload's name.
    commands: dict
    conf: dict = field(default_factory=dict)
    # A command that an application obeys before the first workload.
    prepare: str = ""
    # True if tasks read everything that was fetched for them. If a join or a LIMIT ends a task
    # early, Faro has delivered blocks that Spark's metrics, which count what was read, leave out.
    reads_all: bool = True

    @property
    def names(self):
        return list(self.commands)


SECURE = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "known to all of the bench",
    "spark.network.crypto.enabled": "true",
}


def spark_groups(divisor, names=("A1", "B2", "S", "J", "B1"), conf=None):
    """Returns the groups of the Spark workloads. They differ in compression, which is fixed when an
    executor starts."""
    conf = conf or {}
    commands = {name: f"run {name} {divisor}" for name in names}
    plain = {name: commands.pop(name) for name in ("B1",) if name in commands}
    groups = [Group(commands, conf), Group(plain, {**conf, "spark.shuffle.compress": "false"})]
    return [group for group in groups if group.commands]


def tpcds_group(names, texts, tables):
    """Returns the group of queries, run as users run them: with adaptive execution and Spark's
    other defaults."""
    return Group(
        {name: f"query {texts / name}.sql" for name in names},
        {"spark.sql.adaptive.enabled": "true"},
        prepare=f"tables {tables}",
        reads_all=False,
    )


def compiled(home, target):
    classes = target / "workload-classes"
    shutil.rmtree(classes, ignore_errors=True)
    classes.mkdir(parents=True)
    subprocess.run(
        [
            "javac",
            "-nowarn",
            "-Xlint:none",
            "-cp",
            f"{home}/jars/*",
            "-d",
            str(classes),
            *map(str, sorted((HERE / "workloads").rglob("*.java"))),
            str(FARO_COUNTERS),
            str(ANSWER_FILE),
        ],
        check=True,
    )
    jar = target / "workloads.jar"
    subprocess.run(["jar", "cf", str(jar), "-C", str(classes), "."], check=True)
    return jar


class Application:
    """An application of the side `name`, with its daemons if it has some, on the hosts of `link` if
    it is given. Each of `executors` has a core, and its worker `memory` MiB."""

    def __init__(
        self,
        name,
        side,
        conf,
        home,
        place,
        jar,
        logs,
        link=None,
        executors=EXECUTORS,
        memory=EXECUTOR_MEMORY,
    ):
        self.side = name
        self.executors = executors
        self.faro = side.faro
        self.logs = logs
        self.home = launch.home_of_links(place, home)
        (place / "local").mkdir()
        self.daemons = None
        if side.daemons:
            self.daemons = side.daemons(side.home, place, home, executors, link)
        conf = {**ALWAYS, **conf, **side.conf, "spark.local.dir": str(place / "local")}
        conf.update(self.daemons.conf if self.daemons else {})
        prefix, environment = [], {}
        if link:
            conf.update(link.conf(place / "java", self.daemons.before if self.daemons else ""))
            prefix, environment = link.driver_prefix, link.driver_environment
        jars = [str(j) for j in [*side.jars(), *([jar] if side.own_manager else [])]]
        if jars and home.name.startswith("3."):
            # Before 4.0 the shuffle manager is made before --jars are loaded.
            conf["spark.executor.extraClassPath"] = ":".join(jars)
            conf["spark.driver.extraClassPath"] = ":".join(jars)
        command = [
            *prefix,
            self.home / "bin" / "spark-submit",
            "--master",
            f"local-cluster[{executors},1,{memory}]",
            "--driver-memory",
            "1g",
            "--class",
            "io.faro.bench.WorkloadApp",
            "--name",
            f"faro-bench-{name}",
        ]
        if jars:
            command += ["--jars", ",".join(jars)]
        for key, value in conf.items():
            command += ["--conf", f"{key}={value}"]
        self.talk = Conversation(
            f"Spark application {name}",
            [*command, jar],
            logs / f"{name}-driver.log",
            keep="BENCH ",
            cwd=place,
            env={**launch.environment_for(self.home), **environment},
        )
        self.pids = []

    def _ask(self, line, seconds=RUN_SECONDS):
        answer = self.talk.ask(line, seconds).split(" ", 1)
        if answer[0] != "done":
            raise RuntimeError(f"{self.side}: {line}: {answer[1]}")
        return answer[1] if len(answer) > 1 else ""

    def await_ready(self, prepare):
        if self.talk.answer(START_SECONDS) != "ready":
            raise Broken(f"{self.side} did not start")
        if prepare:
            self._ask(prepare)
        self.find_executors()

    def find_executors(self):
        said = self._ask(f"executors {self.executors}", EXECUTORS_SECONDS)
        self.pids = [int(pid) for pid in said.split()]

    def run(self, command, seconds=RUN_SECONDS):
        beside = [self.talk.pid, *(self.daemons.pids if self.daemons else [])]
        before = {pid: cpu.process_nanos(pid) for pid in [*self.pids, *beside]}
        wire = cpu.loopback_bytes()
        said = self._ask(command, seconds)
        wire = cpu.loopback_bytes() - wire
        figures = {name: int(value) for name, value in re.findall(r"(\w+)=(-?\d+)", said)}
        try:
            spent = {pid: cpu.process_nanos(pid) - had for pid, had in before.items()}
        except OSError:
            seconds = figures["jobMillis"] / 1e3
            raise RuntimeError(
                f"an executor ended during '{command}', which took {seconds:.1f} s"
            ) from None
        return {
            "job_s": figures["jobMillis"] / 1e3,
            "reduce_s": figures["reduceMillis"] / 1e3,
            "cpu_s": sum(spent[pid] for pid in self.pids) / 1e9,
            "all_cpu_s": sum(spent.values()) / 1e9,
            "daemons_cpu_s": sum(spent[pid] for pid in beside[1:]) / 1e9,
            "daemons_bytes": sum(map(cpu.resident_bytes, beside[1:])),
            "loopback_bytes": wire,
            "fetch_wait_s": figures["fetchWaitMillis"] / 1e3,
            "remote_blocks": figures["remoteBlocks"],
            "remote_bytes": figures["remoteBytes"],
            "local_bytes": figures["localBytes"],
            "written_bytes": figures["writtenBytes"],
            "spilled_bytes": figures["spilledBytes"],
        }

    def killed(self, workload, divisor, victims, seconds=RUN_SECONDS):
        """Runs a job whose executors are killed between its stages, and returns its figures without
        CPU."""
        said = self._ask(f"killed {workload} {divisor} {victims} {self.executors}", seconds)
        figures = {name: int(value) for name, value in re.findall(r"(\w+)=(-?\d+)", said)}
        if victims:
            self.find_executors()
        return {
            "job_s": figures["jobMillis"] / 1e3,
            "map_s": figures["mapMillis"] / 1e3,
            "map_tasks": figures["mapTasks"],
            "again": figures["againTasks"],
            "rows": figures["rows"],
        }

    def tail(self, divisor, seconds=RUN_SECONDS):
        """Runs a job with a long tail, and returns its figures without CPU."""
        said = self._ask(f"tail {divisor}", seconds)
        figures = {name: int(value) for name, value in re.findall(r"(\w+)=(-?\d+)", said)}
        return {
            "job_s": figures["jobMillis"] / 1e3,
            "executor_s": figures["executorMillis"] / 1e3,
            "most": figures["mostExecutors"],
            "left": figures["leftExecutors"],
            "map_tasks": figures["mapTasks"],
            "again": figures["againTasks"],
        }

    def clean(self):
        self._ask("clean")

    def counters(self):
        if not self.faro:
            return {}
        pairs = re.findall(r"([\w.]+)=(-?[\d.]+(?:E-?\d+)?)", self._ask("counters"))
        return {name: float(value) for name, value in pairs}

    def stop(self):
        self.talk.stop(launch.EXECUTORS_END)
        if self.daemons:
            self.daemons.stop()
        for stderr in (self.home / "work").glob("app-*/*/stderr"):
            shutil.copy(stderr, self.logs / f"{self.side}-executor-{stderr.parent.name}.log")


class ElasticApplication(Application):
    """One whose executors come and go, up to `executors`: no process is known by its id."""

    def find_executors(self):
        self._ask("executors 1", EXECUTORS_SECONDS)


def measure(
    home, faro_jar, target, sides, groups, warm_ups, rounds, progress, scratch=TMPFS, around=None
):
    """Returns the rounds per workload and side, the counters' report on them, and errors. Shuffle
    files are below `scratch`. `around` has the actions before and after each workload."""
    jar = compiled(home, target)
    every = known.all_sides(faro_jar)
    results, broken = {}, {}
    for group in groups:
        place = Path(tempfile.mkdtemp(prefix="faro-bench-", dir=scratch))
        logs = target / "spark-logs" / "-".join(group.names)
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir(parents=True)
        applications = []
        try:
            # Applications are started one by one: if one cannot be started, all before it are
            # stopped.
            for side in sides:
                if side not in broken:
                    make = partial(
                        Application,
                        *(side, every[side], group.conf, home, place / side, jar, logs),
                    )
                    applications += _started(broken, side, make)
            progress(
                f"starting Spark applications for {', '.join(group.names)}: "
                f"{', '.join(a.side for a in applications)}"
            )
            for application in list(applications):
                ready = partial(application.await_ready, group.prepare)
                if not guard(broken, application.side, ready):
                    applications.remove(application)
                    application.stop()
            for name in group.names:
                if around:
                    around.before(name, applications, broken)
                results[name] = _alternate(
                    name, group, applications, warm_ups, rounds, broken, progress
                )
                if around:
                    around.after(name, results[name], broken)
        finally:
            for application in applications:
                application.stop()
            shutil.rmtree(place, ignore_errors=True)
    return results, broken


def _alternate(name, group, applications, warm_ups, rounds, broken, progress):
    result = {a.side: {"rounds": [], "faro": {}} for a in applications}
    counters = {}
    for number in range(warm_ups + rounds):
        if number == warm_ups:
            for application in applications:
                if application.side not in broken:
                    guard(
                        broken,
                        application.side,
                        lambda a=application: counters.update({a.side: a.counters()}),
                    )
        turn = number % max(1, len(applications))
        for application in applications[turn:] + applications[:turn]:
            side = application.side
            if side in broken:
                continue
            started = time.monotonic()

            def one(app=application, measured=number >= warm_ups, to=result[side]["rounds"]):
                figures = app.run(group.commands[name])
                app.clean()
                if measured:
                    to.append(figures)

            if guard(broken, side, one):
                what = f"run {number - warm_ups + 1}" if number >= warm_ups else "warm-up"
                progress(f"{name} {what} {side}: {time.monotonic() - started:.1f} s")
    for application in applications:
        side = application.side
        if side not in broken and application.faro:
            after = application.counters()
            result[side]["faro"] = {
                key: value - counters[side].get(key, 0) for key, value in after.items()
            }
            problem = not_through_faro(result[side], group.reads_all)
            if problem:
                broken[side] = f"{name}: {problem}"
    return result


def not_through_faro(side, exactly):
    """Returns how Faro's counts differ from the remote blocks and bytes that Spark counted, or that
    blocks fell back; None if neither is true."""
    faro = side["faro"]
    for unit, key in (("remote_blocks", "remoteBlocks."), ("remote_bytes", "remoteBytes.")):
        spark = sum(r[unit] for r in side["rounds"])
        ours = sum(value for name, value in faro.items() if name.startswith(key))
        # Spark rounds no byte count, and empty blocks are never asked for.
        if ours < spark or (exactly and ours > spark):
            return f"Spark counted {spark} {unit}, Faro {ours:.0f}"
    if faro.get("fallbacks", 0):
        return f"{faro['fallbacks']:.0f} fall-backs"
    return None


def _started(broken, side, make):
    """Returns a list of the application, or an empty one if it could not be started."""
    made = []
    guard(broken, side, lambda: made.append(make()))
    return made


def guard(broken, side, action):
    """Runs `action` and returns whether it succeeded. If not, notes the error in `broken` under the
    side."""
    try:
        action()
        return True
    except RuntimeError as error:
        broken[side] = str(error)
        return False
