"""Runs one application on a local-cluster and collects what it left behind."""

import contextlib
import functools
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import guard

from . import build, comet, scenarios

MANAGER = "io.faro.spark.FaroShuffleManager"
PYTHON_JOBS = Path(__file__).resolve().parents[1] / "python" / "jobs.py"
# The JVMs of a short application spend most of their CPU on compiling: with the first compiler and
# the serial collector only it takes a third of the CPU and half the time.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUIET_ARCHIVE = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
# Executors end after the driver does, and write their last lines then.
EXECUTORS_END = 20
# Seconds for what JVMs that are late write of their threads.
DUMPS_END = 5
# How the lines begin by which an application of tests/spark/jobs shows that it gets on, and those
# that say what it waits for. What is owed and does not come has leaked.
MARKS = ("MARK ", "CASE ")
MET, WAITS, OWED = "MARK met ", "WAITS ", "OWED "

ALWAYS = {
    # Executors of one host would otherwise read each other's files and use no transport at all.
    "spark.shuffle.readHostLocalDisk": "false",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "12",
    # Without this the first executor may run everything before the second one is there.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "1h",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


# Leaders of the process groups that run; scenarios run in threads, and signals end the main one.
_running = set()
_starting = threading.Lock()
# No group starts any more.
_stopped = threading.Event()


def stop_all():
    """Ends all applications and services, and starts no more; the threads that wait for them go on,
    and clean up."""
    with _starting:
        _stopped.set()
    for leader in list(_running):
        signal_group(leader, signal.SIGKILL)


def signal_group(leader, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader.pid, number)


def start_group(command, **options):
    streams = {"stderr": subprocess.STDOUT}
    with _starting:
        if _stopped.is_set():
            raise RuntimeError("interrupted")
        leader = subprocess.Popen(command, start_new_session=True, **streams, **options)
        _running.add(leader)
    return leader


class Late(RuntimeError):
    """Something did not start, which a busy machine may be the cause of."""


@dataclass
class Outcome:
    exit_code: int = 0
    late: str = ""  # why it was ended
    seconds: float = 0.0
    driver_log: str = ""
    service_log: str = ""  # of `faro serve`
    executor_logs: dict = field(default_factory=dict)  # executor id -> stderr
    applications: int = 1  # that ran at the same time

    def lines(self, prefix):
        return [line for line in self.driver_log.splitlines() if line.startswith(prefix)]

    def summaries(self):
        """Of the executors that wrote one: each a dict."""
        found = map(summary_of, self.executor_logs.values())
        return [one for one in found if one]

    def counted(self, name):
        """The sum over all summaries of a counter and its parts."""
        return sum(
            int(value)
            for one in self.summaries()
            for key, value in one.items()
            if (key == name or key.startswith(name + ".")) and value.isdigit()
        )

    def waits_for(self, how=(WAITS, OWED)):
        """What its driver waited for at its end."""
        found = {}
        for line in self.driver_log.splitlines():
            if line.startswith((WAITS, OWED)):
                kind, what = line.split(" ", 1)
                found[what] = f"{kind} "
            elif line.startswith(MET):
                found.pop(line[len(MET) :], None)
        return [what for what, kind in found.items() if kind in how]


def run(version, home, scenario, jobs_jar, faro_jar, log_dir, archive=None):
    """`archive`: of classes, where there is one (class_archive.py)."""
    place = Path(tempfile.mkdtemp(prefix="faro-e2e-"))
    try:
        return _run_in(place, version, home, scenario, jobs_jar, faro_jar, log_dir, archive)
    finally:
        shutil.rmtree(place, ignore_errors=True)


@dataclass
class Submission:
    """What is started of an application, which has `place` for itself."""

    place: Path
    home: Path
    conf: dict
    environment: dict
    command: list
    beside: str = ""  # before the names of its logs

    def run(self):
        limit = int(self.conf.get("spark.e2e.limitSeconds", guard.CEILING))
        return drive(self.command, self.environment, self.place, limit, marks=True)


def submission(place, scratch, version, home, scenario, jobs_jar, faro_jar, archive):
    own_home = home_of_links(place, home)
    (place / "local").mkdir()
    conf = {
        **ALWAYS,
        "spark.local.dir": str(place / "local"),
        "spark.faro.fallback": scenario.fallback,
        **scenario.conf,
    }
    if scenarios.FAULTS in conf and not injects_faults(faro_jar):
        raise RuntimeError(f"{faro_jar} cannot inject faults; the jar of the tests can")
    conf = {k: v.replace(scenarios.SCRATCH, str(scratch)) for k, v in conf.items()}
    if scenarios.KEY_STORE in conf.values():
        store = str(key_store(place))
        conf = {k: v.replace(scenarios.KEY_STORE, store) for k, v in conf.items()}
    environment = environment_for(own_home, not scenario.jvm_defaults, archive)

    if scenario.hosts:
        conf["spark.executorEnv.JAVA_HOME"] = str(java_of_hosts(place))
    if scenario.no_library:
        conf["spark.executorEnv.JAVA_HOME"] = str(java_without_library(place))
    if scenario.other_version:
        other = build.other_version(faro_jar, place / "other.jar")
        if scenario.other_version == "executor":
            conf["spark.executorEnv.JAVA_HOME"] = str(java_with_jar_first(place, other))
    if scenario.open_files:
        conf["spark.executorEnv.JAVA_HOME"] = str(java_with_limit(place, scenario.open_files))
    if scenario.volumes:
        conf["spark.executorEnv.JAVA_HOME"] = str(java_with_volumes(place))

    if scenario.service_hosts:
        conf["spark.executorEnv.JAVA_HOME"] = str(java_of_services(place, scratch))
    if scenario.with_service:
        conf["spark.shuffle.service.port"] = str(free_port())
    command = submit_command(
        own_home,
        version,
        f"faro-e2e-{scenario.name}",
        conf,
        faro_jar,
        program_of(scenario, jobs_jar, scratch),
        scenario.executors,
        scenario.cores,
        behind=scenario.behind,
        jars=jars_beside(scenario, jobs_jar, place),
    )
    beside = f"{place.name}-" if place != scratch.parent else ""
    return Submission(place, own_home, conf, environment, command, beside)


def _run_in(place, version, home, scenario, jobs_jar, faro_jar, log_dir, archive):
    scratch = place / "scratch"
    scratch.mkdir()
    (scratch / "bad-values").write_text(
        "".join("\t".join(row) + "\n" for row in scenario.bad_values)
    )
    applications = [
        submission(own_place, scratch, version, home, one, jobs_jar, jar, archive)
        for own_place, one, jar in applications_of(place, scenario, faro_jar)
    ]
    first = applications[0]
    service = None
    node_services = []
    started = time.monotonic()
    log_dir.mkdir(parents=True, exist_ok=True)
    try:
        if scenario.with_service:
            service = start_service(first)
        node_services.extend(
            start_node_service(directory, place, first.environment)
            for directory in directories_of_services(scenario, scratch)
        )
        with ThreadPoolExecutor(len(applications)) as threads:
            outcomes = list(threads.map(Submission.run, applications))
        for one, ended in zip(applications, outcomes):
            collect_executor_logs(one.home / "work", ended, log_dir, one.beside)
        outcome = merged(outcomes)
        for one in node_services:
            outcome.service_log += end_node_service(one)
    finally:
        for one in node_services:
            stop_group(one, 0)
        if service:
            stop_group(service, 0)
        # Copied, not written there: two runs at a time must not read each other's logs.
        for one in applications:
            for log in one.place.glob("*.log"):
                shutil.copy(log, log_dir / f"{one.beside}{log.name}")
    outcome.seconds = time.monotonic() - started
    return outcome


def applications_of(place, scenario, faro_jar):
    """The place, the scenario and Faro's jar of each application that runs at the same time."""
    if not scenario.beside:
        return [(place, scenario, faro_jar)]
    found = []
    for at, settings in enumerate([{}, *scenario.beside]):
        own_place = place / f"beside-{at}" if at else place
        own_place.mkdir(exist_ok=True)
        which = {"spark.e2e.at": f"{at}", "spark.e2e.of": f"{len(scenario.beside) + 1}"}
        one = replace(scenario, conf={**scenario.conf, **(settings or {}), **which})
        found.append((own_place, one, None if settings is None else faro_jar))
    return found


def merged(outcomes):
    """What several applications left behind, as if they were one."""
    outcome = outcomes[0]
    outcome.applications = len(outcomes)
    for one in outcomes[1:]:
        outcome.exit_code = outcome.exit_code or one.exit_code
        outcome.late = outcome.late or one.late
        outcome.driver_log += one.driver_log
        outcome.executor_logs.update(one.executor_logs)
    return outcome


@functools.cache
def injects_faults(faro_jar):
    """Whether this machine's library in the jar can, as native/endpoint/src/faults.rs does it."""
    name = f"META-INF/native/linux-{platform.machine()}/libfaro_jni.so"
    with zipfile.ZipFile(faro_jar) as jar:
        return b"FARO_FAULTS" in jar.read(name)


def program_of(scenario, jobs_jar, scratch):
    if scenario.python:
        return [None, PYTHON_JOBS, scratch, *scenario.cases]
    return ["io.faro.e2e.Jobs", jobs_jar, scratch, *scenario.cases]


def jars_beside(scenario, jobs_jar, place):
    """The jars beside Faro's: the scenario's shuffle manager, another version, and what a Python
    program calls."""
    found = [comet.jar(scenario.version)] if scenario.comet else []
    if scenario.other_version == "jars":
        found.append(place / "other.jar")
    needs_jobs = scenario.python or scenario.behind.startswith("io.faro.e2e.")
    return [*found, jobs_jar] if needs_jobs else found


def home_of_links(place, home):
    """local-cluster writes executors' logs to $SPARK_HOME/work, whatever is configured; a home of
    links keeps them apart from other runs and out of the cache."""
    own_home = place / "home"
    own_home.mkdir(parents=True)
    for part in home.iterdir():
        # An application that was run by hand with the cached home leaves this folder there.
        if part.name != "work":
            (own_home / part.name).symlink_to(part)
    return own_home


def java_home(place, script):
    """A JAVA_HOME whose java is this script."""
    java = place / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/usr/bin/env bash\n{script}")
    java.chmod(0o755)
    return java.parents[1]


def java_with_limit(place, files):
    """Lets each executor have so many open files: a JVM raises its own limit up to the hard one."""
    return java_home(place, f'ulimit -n {files}\nexec {java_program()} "$@"\n')


def java_with_volumes(place):
    """Gives each worker's executors one volume, where Spark's recovery looks: in the directories
    beside spark-*/executor-*/blockmgr-*. A worker names its directory when it starts."""
    volumes = place / "volumes"
    return java_home(
        place,
        f"""
volume={volumes}/${{SPARK_EXECUTOR_DIRS##*/}}
export SPARK_EXECUTOR_DIRS=$volume/spark-x/executor-x
mkdir -p "$SPARK_EXECUTOR_DIRS"
exec {java_program()} "$@"
""",
    )


def java_of_hosts(place, host="127.0.0.$((2 + id))", before="", prefix=""):
    """Gives each executor a host of its own: all workers of a local-cluster have the same. `host`
    is its address, in which the shell replaces the executor's number `id`; `before`: lines in front
    of the start; `prefix`: words in front of it."""
    return java_home(
        place,
        f"""
words=("$@")
for i in "${{!words[@]}}"; do
  case ${{words[i]}} in
    --executor-id) id=${{words[i + 1]}} ;;
    --hostname) host=$((i + 1)) ;;
  esac
done
words[host]={host}
{before}exec {prefix}{java_program()} "${{words[@]}}"
""",
    )


def java_of_services(place, scratch):
    """Gives the executors of each worker the service of one host, as /proc/self/cwd/service: all
    workers of a local-cluster have one host and one configuration."""
    link = f"$host/worker-{place.name}"
    return java_home(
        place,
        f"""
worker=${{SPARK_EXECUTOR_DIRS##*/}}
for host in {scratch}/host-*; do
  if ln -s "$worker" "{link}" 2>/dev/null || [[ $(readlink "{link}") == "$worker" ]]; then
    ln -s "$host/service" service
    break
  fi
done
exec {java_program()} "$@"
""",
    )


def java_without_library(place):
    """Gives executor 0 the path of a native library that is not there."""
    return java_home(
        place,
        f"""
case " $* " in
  *" --executor-id 0 "*) set -- -Dfaro.library.path={place}/no-library.so "$@" ;;
esac
exec {java_program()} "$@"
""",
    )


def java_with_jar_first(place, jar):
    """Puts the jar first on the class path of executor 0."""
    return java_home(
        place,
        f"""
words=("$@")
for i in "${{!words[@]}}"; do
  if [[ ${{words[i]}} == -cp && " $* " == *" --executor-id 0 "* ]]; then
    words[i + 1]={jar}:${{words[i + 1]}}
    break
  fi
done
exec {java_program()} "${{words[@]}}"
""",
    )


def java_program(name="java"):
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", name)) if home else shutil.which(name)


def key_store(place):
    """A new key with its certificate, which is also the only one to trust."""
    store = place / "keys.p12"
    subprocess.run(
        [
            java_program("keytool"),
            "-genkeypair",
            *["-alias", "spark", "-keyalg", "EC", "-groupname", "secp256r1"],
            *["-dname", "CN=127.0.0.1", "-ext", "san=ip:127.0.0.1", "-validity", "2"],
            *["-storetype", "PKCS12", "-keystore", str(store)],
            *["-storepass", scenarios.KEY_STORE_PASSWORD],
        ],
        check=True,
        capture_output=True,
    )
    return store


def environment_for(home, short_lived=False, archive=None):
    """With the JVM's defaults unless the application is short-lived; it may have an archive."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SPARK_")}
    if short_lived:
        environment["JAVA_TOOL_OPTIONS"] = short_lived_options(archive)
    environment.update(SPARK_HOME=str(home), SPARK_LOCAL_IP="127.0.0.1")
    return environment


def short_lived_options(archive=None):
    if not archive:
        return SHORT_LIVED
    # What does not fit, for other jars in front, is not used, and that is not worth a line.
    return f"{SHORT_LIVED} -XX:SharedArchiveFile={archive} {QUIET_ARCHIVE}"


def spark_submit(home, master, name, conf, program, *words, jars=(), jars_first=()):
    """The one line by which tests, benchmarks and demos start Spark. `program`: the main class
    (None: a Python file has none), its jar and its arguments; `words`: more of the line's own;
    `jars_first`: those that are on the class path from the beginning."""
    main_class, *rest = program
    words = [home / "bin" / "spark-submit", "--master", master, "--name", name, *words]
    words += ["--class", main_class] if main_class else []
    words += ["--jars", ",".join(map(str, jars))] if jars else []
    if jars_first:
        path = ":".join(map(str, jars_first))
        words += ["--driver-class-path", path]
        conf = {"spark.executor.extraClassPath": path, **conf}
    for key, value in conf.items():
        words += ["--conf", f"{key}={value}"]
    return [str(word) for word in [*words, *rest]]


def without_faro(conf):
    """What stock Spark gets of a configuration."""
    return {key: value for key, value in conf.items() if not key.startswith("spark.faro.")}


def submit_command(
    home,
    version,
    name,
    conf,
    faro_jar,
    program,
    executors=2,
    cores=1,
    memory=1024,
    behind="",
    jars=(),
):
    """A user's application on a local-cluster; `cores`: tasks at a time in an executor; `memory`:
    of each heap, in MiB, where `conf` gives executors no other; `behind`: the shuffle manager that
    Faro is a plug-in behind; `jars`: more of them."""
    # A worker's memory in `local-cluster[...]` is not its executor's heap.
    conf = {"spark.executor.memory": f"{memory}m", **conf}
    if faro_jar:
        jars = [*jars, faro_jar]
        conf = {**conf, "spark.shuffle.manager": behind or MANAGER}
        if behind:
            plugins = [conf.get("spark.plugins"), scenarios.PLUGIN]
            conf["spark.plugins"] = ",".join(filter(None, plugins))
    else:
        jars, conf = [], without_faro(conf)
    master = f"local-cluster[{executors},{cores},{memory}]"
    # Before 4.0 the shuffle manager is made before --jars are loaded.
    first = jars if version.spark.startswith("3.") and behind != "sort" else ()
    words = ["--driver-memory", f"{memory}m"]
    return spark_submit(home, master, name, conf, program, *words, jars=jars, jars_first=first)


def drive(command, environment, place, limit=guard.CEILING, marks=False):
    """`marks`: it shows that it gets on, and is late when it has not for a while."""
    outcome = Outcome()
    log = place / "driver.log"
    with log.open("wb") as out:
        out.write((" ".join(command) + "\n").encode())
        out.flush()
        driver = start_group(
            command, stdin=subprocess.DEVNULL, stdout=out, env=environment, cwd=place
        )
        # An interrupted application is not waited for.
        grace = 0
        try:
            silence = guard.SILENCE if marks else limit
            outcome.late = guard.wait(driver, log, is_mark, silence, limit)
            outcome.exit_code = -1 if outcome.late else driver.returncode
            grace = 0 if _stopped.is_set() else EXECUTORS_END
            if outcome.late:
                # Each JVM writes what its threads do, for whoever looks into the logs.
                signal_group(driver, signal.SIGQUIT)
                grace = DUMPS_END
        finally:
            stop_group(driver, grace)
    outcome.driver_log = log.read_text(errors="replace")
    if outcome.late and (waits := outcome.waits_for()):
        outcome.late += f", waiting for: {'; '.join(waits)}"
    return outcome


def is_mark(line):
    return line.startswith(MARKS)


def stop_group(leader, grace):
    """Gives the processes of the group time to end by themselves, then ends them."""
    deadline = time.monotonic() + grace
    try:
        while time.monotonic() < deadline:
            os.killpg(leader.pid, 0)
            time.sleep(0.05)
        os.killpg(leader.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    leader.wait()
    _running.discard(leader)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_service(application):
    """Spark's own external shuffle service: local-cluster's workers do not start one."""
    conf = application.conf
    settings = {k: v for k, v in conf.items() if k.startswith(("spark.shuffle", "spark.local"))}
    settings["spark.shuffle.service.db.enabled"] = "false"
    log = application.place / "shuffle-service.log"
    with log.open("wb") as out:
        service = start_group(
            [
                java_program(),
                "-Xmx256m",
                *[f"-D{k}={v}" for k, v in settings.items()],
                "-cp",
                f"{application.home}/jars/*",
                "org.apache.spark.deploy.ExternalShuffleService",
            ],
            stdout=out,
            env=application.environment,
        )
    if not listens(service, int(conf["spark.shuffle.service.port"])):
        raise_not_started("the external shuffle service", service, log)
    return service


def raise_not_started(name, service, log):
    """`service` has not begun to serve, and has been ended if it had not by itself."""
    said = log.read_text(errors="replace")[-300:]
    if service.returncode == -signal.SIGKILL:
        raise Late(f"{name} did not start: {said}")
    raise RuntimeError(f"{name} ended with exit code {service.returncode}: {said}")


def directories_of_services(scenario, scratch):
    """Of each `faro serve`."""
    if scenario.service_hosts:
        return [scratch / f"host-{at}" for at in range(scenario.service_hosts)]
    return [scratch] if scenario.node_service else []


# As an init system does it: the daemon is started again when it was killed, and told when to end.
# When it has ended and the file is there, another one takes its place, with that FARO_FAULTS.
SUPERVISOR = """
replacement=$1
shift
trap 'ends=1; kill -TERM $daemon' TERM
code=137
while ((code == 137)); do
  "$@" &
  daemon=$!
  wait $daemon
  code=$?
  if [[ $ends ]]; then
    wait $daemon
    exit
  fi
  if [[ -e $replacement ]]; then
    export FARO_FAULTS=$(<"$replacement")
    [[ $FARO_FAULTS ]] || unset FARO_FAULTS
    rm "$replacement"
    code=137
  fi
done
exit $code
"""


def start_node_service(directory, place, environment, address="127.0.0.1"):
    """`faro serve`, with its socket in directory/service and what it keeps in directory/kept; its
    log is in `place`."""
    socket_dir = directory / "service"
    log = place / f"node-service-{directory.name}.log"
    places = ["--socket-dir", socket_dir, "--data-dir", directory / "kept"]
    limits = ["--address", address, "--memory", "576m"]
    with log.open("wb") as out:
        supervised = ["bash", "-c", SUPERVISOR, "supervisor", directory / "replacement"]
        command = [*supervised, build.command(), "serve", *places, *limits]
        service = start_group([str(word) for word in command], stdout=out, env=environment)
    service.log = log
    if not started(service, (socket_dir / "faro-serve.sock").exists):
        raise_not_started("faro serve", service, log)
    return service


def end_node_service(service):
    """Ends it as an init system does; its log, with its exit code."""
    service.terminate()
    try:
        code = service.wait(guard.SILENCE)
    except subprocess.TimeoutExpired:
        code = "none, it did not end"
    log = service.log.read_text(errors="replace")
    return f"{log}exit code {code}\n"


def listens(leader, port):
    """Waits until the process listens; ends it and says no if it does not."""

    def connects():
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return False
        return True

    return started(leader, connects)


def started(leader, is_there):
    """Waits until something is there, or the process has ended, or is silent for long: then this
    ends it and says no."""
    deadline = time.monotonic() + guard.SILENCE
    while time.monotonic() < deadline and leader.poll() is None:
        if is_there():
            return True
        time.sleep(0.05)
    stop_group(leader, 0)
    return False


def collect_executor_logs(work, outcome, log_dir, beside=""):
    """`beside`: before the names, where several applications have run."""
    for stderr in sorted(work.glob("app-*/*/stderr")):
        text = stderr.read_text(errors="replace")
        outcome.executor_logs[beside + stderr.parent.name] = text
        if outcome.late:
            text += (stderr.parent / "stdout").read_text(errors="replace")
        (log_dir / f"{beside}executor-{stderr.parent.name}.log").write_text(text)


def summary_of(log):
    """The key=value pairs of an executor's 'Faro summary:' line; None when there is none."""
    found = None
    for line in log.splitlines():
        if "Faro summary:" in line:
            found = dict(re.findall(r"([\w.]+)=([\w.:/-]+)", line.split("Faro summary:", 1)[1]))
    return found
