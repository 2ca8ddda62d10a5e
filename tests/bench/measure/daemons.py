"""The servers of Celeborn and Uniffle, on this host, from an installation that a user names.

Written from their documentation: neither is on Maven Central, and neither was here to try.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness import launch

HEAP = "-Xmx1g"


@dataclass
class Running:
    """Processes, and the settings with which an application finds them."""

    leaders: list
    conf: dict[str, str]

    @property
    def pids(self) -> list[int]:
        return [leader.pid for leader in self.leaders]

    def stop(self) -> None:
        for leader in self.leaders:
            launch.stop_group(leader, 0)


def celeborn(home: Path, place: Path) -> Running:
    """A master and a worker, which keeps its files below `place`."""
    master, worker = launch.free_port(), launch.free_port()
    settings = place / "celeborn-defaults.conf"
    settings.write_text(
        f"celeborn.master.endpoints 127.0.0.1:{master}\n"
        f"celeborn.master.http.port {launch.free_port()}\n"
        f"celeborn.worker.http.port {launch.free_port()}\n"
        f"celeborn.worker.storage.dirs {place / 'worker'}\n"
    )
    java = [launch.java_program(), HEAP, "-cp", f"{home}/jars/*:{home}/master-jars/*"]
    package = "org.apache.celeborn.service.deploy"
    where = ["--host", "127.0.0.1", "--properties-file", settings]
    first = start(
        place, "master", [*java, f"{package}.master.Master", *where, "--port", master], master
    )
    java[-1] = f"{home}/jars/*:{home}/worker-jars/*"
    address = f"celeborn://127.0.0.1:{master}"
    second = start(
        place,
        "worker",
        [*java, f"{package}.worker.Worker", *where, "--port", worker, address],
        worker,
    )
    return Running([first, second], {"spark.celeborn.master.endpoints": f"127.0.0.1:{master}"})


def uniffle(home: Path, place: Path) -> Running:
    """A coordinator and a shuffle server, which keeps its files below `place`."""
    coordinator, server = launch.free_port(), launch.free_port()
    quorum = f"127.0.0.1:{coordinator}"
    leaders = []
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
            },
        ),
    ):
        conf = {"rss.rpc.server.port": port, "rss.jetty.http.port": launch.free_port(), **more}
        settings = place / f"{name}.conf"
        settings.write_text("".join(f"{key} {value}\n" for key, value in conf.items()))
        jars = f"{home}/jars/{name}/*"
        command = [launch.java_program(), HEAP, "-cp", jars, main, "--conf", settings]
        leaders.append(start(place, name, command, port))
    return Running(leaders, {"spark.rss.coordinator.quorum": quorum})


def start(place: Path, name: str, command: list, port: int):
    """The process, once it listens."""
    log = place / f"{name}.log"
    with log.open("wb") as out:
        leader = launch.start_group([str(part) for part in command], stdout=out, cwd=place)
    if not launch.listens(leader, port):
        said = log.read_text(errors="replace")[-400:]
        raise RuntimeError(f"{name} did not open port {port}: {said}")
    return leader
