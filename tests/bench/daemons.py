"""Starts daemons beside Spark, on this host: Spark's shuffle service, `faro serve`, and the servers
of Celeborn and Uniffle, from an installation that a user names.

Such an installation has the layout of the project's own binary release. Celeborn's servers are
started by its own scripts. Uniffle's scripts take their settings and put their logs into the
installation, and let only one coordinator run on a host, so its servers are started from its jars.

The starts of Celeborn (0.5.4) and Uniffle (0.10.0, a snapshot) have run, with servers that were
built from their sources.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import links
from harness import launch

ROOT = Path(__file__).resolve().parents[2]
HEAP = "1g"


@dataclass
class Running:
    """Processes, and the settings by which an application finds them."""

    leaders: list
    conf: dict[str, str]
    # Shell lines that an executor runs before it starts, where the executors have hosts.
    before: str = ""

    @property
    def pids(self) -> list[int]:
        return [leader.pid for leader in self.leaders]

    def stop(self) -> None:
        for leader in self.leaders:
            launch.stop_group(leader, 0)


# Starts a side's daemons from an installation (if it needs one), below a folder, beside a Spark,
# for a number of executors, on the hosts of links if there are some.
Start = Callable[[Path | None, Path, Path, int, links.Links | None], Running]


def start_guarded(command: list, log: Path, place: Path, environment: dict | None = None):
    """Starts a daemon that the kernel kills when this program's main thread ends, however it ends:
    a signal may come before the daemon is noted anywhere. To be called by the main thread."""
    setpriv = shutil.which("setpriv")
    guard = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
    with log.open("wb") as out:
        return launch.start_group(
            [*guard, *map(str, command)], stdout=out, cwd=place, env=environment
        )


def sparks(_home: None, place: Path, spark: Path, _executors: int, _link: None) -> Running:
    """Starts Spark's own shuffle service, with the heap that Spark's script gives it."""
    port = launch.free_port()
    conf = {
        "spark.shuffle.service.enabled": "true",
        "spark.shuffle.service.port": str(port),
    }
    settings = {
        **conf,
        "spark.shuffle.service.db.enabled": "false",
        # The service of Spark 4.3 serves no files elsewhere.
        "spark.local.dir": str(place / "local"),
    }
    command = [
        launch.java_program(),
        f"-Xmx{HEAP}",
        *(f"-D{key}={value}" for key, value in settings.items()),
        *("-cp", f"{spark}/jars/*", "org.apache.spark.deploy.ExternalShuffleService"),
    ]
    leaders: list = []
    start(leaders, place, "shuffle-service", command, port, launch.environment_for(spark))
    return Running(leaders, conf)


def faro(replicas: int) -> Start:
    """Starts a `faro serve` for each executor, on the executor's host or as if each were on a host
    of its own: executors that share one read the files of map outputs, which it lends. With
    replicas each copies map outputs of others."""

    def started(
        _home: None, place: Path, _spark: Path, executors: int, link: links.Links | None
    ) -> Running:
        running = Running([], {"spark.faro.service.directory": "/proc/self/cwd/service"})
        if link:
            running.before = f"ln -s {place}/host-$id/service service\n"
        else:
            java = launch.java_of_services(place, place)
            running.conf["spark.executorEnv.JAVA_HOME"] = str(java)
        if replicas:
            running.conf["spark.faro.replicas"] = str(replicas)
        try:
            for at in range(executors):
                host = place / f"host-{at}"
                host.mkdir()
                prefix = link.host_prefix(at) if link else []
                address = links.host_address(at) if link else "127.0.0.1"
                running.leaders.append(start_faro(host, prefix, address))
        except BaseException:
            running.stop()
            raise
        return running

    return started


def start_faro(place: Path, prefix: list[str], address: str):
    """Returns `faro serve` when its socket is in the folder `service` of `place`. Its readers
    connect over TCP, as on several hosts. `prefix` is a command that runs it."""
    socket_dir, log = place / "service", place / "faro-serve.log"
    command = [
        *prefix,
        ROOT / "dist" / f"faro-{platform.machine()}",
        "serve",
        *("--socket-dir", socket_dir, "--data-dir", place / "kept"),
        *("--address", address, "--fabric", "tcp"),
    ]
    leader = start_guarded(command, log, place)
    if not launch.started(leader, (socket_dir / "faro-serve.sock").exists):
        raise RuntimeError(f"faro serve: {log.read_text(errors='replace')[-400:]}")
    return leader


def celeborn(home: Path, place: Path, _spark: Path, _executors: int, _link: None) -> Running:
    """Starts a master and a worker, which keeps its files below `place`."""
    master, worker = launch.free_port(), launch.free_port()
    conf = place / "celeborn-conf"
    conf.mkdir()
    settings = {
        "celeborn.master.endpoints": f"127.0.0.1:{master}",
        "celeborn.master.host": "127.0.0.1",
        "celeborn.master.port": master,
        "celeborn.master.http.host": "127.0.0.1",
        "celeborn.master.http.port": launch.free_port(),
        "celeborn.worker.http.host": "127.0.0.1",
        "celeborn.worker.http.port": launch.free_port(),
        "celeborn.worker.storage.dirs": place / "worker",
    }
    write(conf / "celeborn-defaults.conf", settings)
    environment = {
        **os.environ,
        # Both scripts end by exec of the server, which so has the script's process id.
        "CELEBORN_NO_DAEMONIZE": "1",
        "CELEBORN_HOME": str(home),
        "CELEBORN_CONF_DIR": str(conf),
        "CELEBORN_LOG_DIR": str(place),
        "CELEBORN_PID_DIR": str(place / "celeborn-pids"),
        "CELEBORN_MASTER_MEMORY": HEAP,
        "CELEBORN_WORKER_MEMORY": HEAP,
        "CELEBORN_WORKER_OFFHEAP_MEMORY": HEAP,
        "JAVA_HOME": str(Path(launch.java_program()).resolve().parents[1]),
    }
    leaders: list = []
    for name, port, more in (
        ("master", master, []),
        ("worker", worker, [f"celeborn://127.0.0.1:{master}"]),
    ):
        script = home / "sbin" / f"start-{name}.sh"
        command = [script, "--host", "127.0.0.1", "--port", port, *more]
        start(leaders, place, name, command, port, environment)
    return Running(leaders, {"spark.celeborn.master.endpoints": f"127.0.0.1:{master}"})


def uniffle(home: Path, place: Path, spark: Path, _executors: int, _link: None) -> Running:
    """Starts a coordinator and a shuffle server, which keeps its files below `place`. They need
    Hadoop's classes, which a release may lack; they use those that come with Spark."""
    coordinator, server = launch.free_port(), launch.free_port()
    quorum = f"127.0.0.1:{coordinator}"
    leaders: list = []
    for name, port, main, more in (
        ("coordinator", coordinator, "org.apache.uniffle.coordinator.CoordinatorServer", {}),
        (
            "server",
            server,
            "org.apache.uniffle.server.ShuffleServer",
            {
                "rss.coordinator.quorum": quorum,
                "rss.storage.basePath": place / "server",
                "rss.storage.type": "MEMORY_LOCALFILE",
                "rss.server.buffer.capacity": "512mb",
                "rss.server.read.buffer.capacity": "256mb",
                "rss.server.heartbeat.delay": "1000",
            },
        ),
    ):
        conf = {"rss.rpc.server.port": port, "rss.jetty.http.port": launch.free_port(), **more}
        settings = place / f"{name}.conf"
        write(settings, conf)
        jars = ":".join([f"{home}/jars/{name}/*", *map(str, hadoop_of(spark))])
        command = [launch.java_program(), f"-Xmx{HEAP}", "-cp", jars, main, "--conf", settings]
        start(leaders, place, name, command, port, {**os.environ, "RSS_IP": "127.0.0.1"})
    return Running(leaders, {"spark.rss.coordinator.quorum": quorum})


def hadoop_of(spark: Path) -> list[Path]:
    """Returns Hadoop's client, and a library that comes with a Hadoop of its own but is hidden in
    the client: without it the shuffle server says only that it could not set up its storage."""
    jars = spark / "jars"
    return sorted([*jars.glob("hadoop-client-*.jar"), *jars.glob("commons-io-*.jar")])


def write(path: Path, settings: dict) -> None:
    path.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))


def start(
    leaders: list, place: Path, name: str, command: list, port: int, environment: dict
) -> None:
    """Adds a process once it listens. If it does not listen, ends all processes."""
    log = place / f"{name}.log"
    leader = start_guarded(command, log, place, environment)
    leaders.append(leader)
    if not launch.listens(leader, port):
        Running(leaders, {}).stop()
        said = log.read_text(errors="replace")[-400:]
        raise RuntimeError(f"{name} did not open port {port}: {said}")
