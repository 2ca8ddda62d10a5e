"""The transport ladder: an owner and a reader process; the sides take turns on the same files."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import cpu
import links
from harness.conversation import Broken, Conversation
from results import NAMES, TARGET, say

HERE = Path(__file__).resolve().parent
START_SECONDS, ANSWER_SECONDS = 120, 150
WARM_UP_PASSES = 12
WARM_SHARE = 0.03  # of the CPU of both processes
DISK, TMPFS = "disk", "tmpfs"
# Spark's default spark.reducer.maxSizeInFlight is 48 MB, and a request is a fifth of it.
REQUEST_BYTES = (48 << 20) // 5
REQUEST_BLOCKS = 1000


@dataclass(frozen=True)
class Shape:
    shuffle: int
    name: str
    maps: int
    reducers: int
    block_bytes: int
    blocks_per_request: int

    @property
    def spec(self):
        return (
            f"{self.shuffle}:{self.maps}:{self.reducers}:{self.block_bytes}:"
            f"{self.blocks_per_request}"
        )

    @property
    def total_bytes(self):
        return self.maps * self.reducers * self.block_bytes


def _shape(number, name, maps, reducers, block_bytes, most=REQUEST_BLOCKS):
    per_request = max(1, min(most, REQUEST_BYTES // block_bytes))
    return Shape(number, name, maps, reducers, block_bytes, per_request)


KB, MB = 1 << 10, 1 << 20
# Each shape has enough map outputs to fill a request with blocks of one reduce partition, and about
# 200 MB.
ALL = [
    # A1 of the Spark workloads has 400 x 400 blocks, and a reduce task asks a peer for 200 of them.
    _shape(0, "A1", 400, 400, 200, most=200),
    _shape(1, "1 KB", 1000, 100, KB),
    _shape(2, "4 KB", 1000, 50, 4 * KB),
    _shape(3, "16 KB", 600, 20, 16 * KB),
    _shape(4, "64 KB", 153, 20, 64 * KB),
    _shape(5, "256 KB", 38, 20, 256 * KB),
    _shape(6, "1 MB", 18, 12, MB),
    _shape(7, "4 MB", 12, 4, 4 * MB),
    _shape(8, "16 MB", 6, 2, 16 * MB),
]
QUICK = [ALL[0], ALL[1], ALL[4], ALL[7]]


def jvm_options(class_path):
    """Returns the options with which Spark starts its executors."""
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "Options.java"
        source.write_text(
            "class Options { public static void main(String[] a) { System.out.println("
            "org.apache.spark.launcher.JavaModuleOptions.defaultModuleOptions()); } }"
        )
        return subprocess.run(
            ["java", "-cp", class_path, str(source)], check=True, stdout=subprocess.PIPE, text=True
        ).stdout.split()


def _java(link, number):
    """Returns the words that start a JVM, on a host of the link if there is one."""
    if link is None:
        return ["java"]
    own, owner = links.host_address(number), links.host_address(0)
    properties = [f"-Dfaro.bench.own={own}", f"-Dfaro.bench.owner={owner}"]
    return [*link.host_prefix(number), "java", *properties]


class Ladder:
    def __init__(self, options, shapes, sides, kind=TMPFS, link=None):
        """`link`: the owner is on the first of its hosts, the reader on the second."""
        self.owner = self.reader = None
        parent = "/dev/shm" if kind == TMPFS else TARGET
        self.place = Path(tempfile.mkdtemp(prefix="faro-bench-", dir=parent))
        self.file_system = file_system(self.place)
        try:
            classes = self.place / "classes"
            classes.mkdir()
            path = f"{options.home}/jars/*:{options.jar}"
            sources = sorted((HERE / "ladder").rglob("*.java"))
            words = ["javac", "-nowarn", "-Xlint:none", "-cp", path, "-d", classes, *sources]
            subprocess.run([str(word) for word in words], check=True)
            path = f"{classes}:{options.jar}:{options.home}/jars/*"
            java = [*jvm_options(path), "-Xms1g", "-Xmx2g"]
            java += [*os.environ.get("FARO_BENCH_JAVA_OPTIONS", "").split(), "-cp", path]
            total = sum(shape.total_bytes for shape in shapes)
            say(f"writing {total / 1e9:.1f} GB of map outputs on {self.file_system} ...")
            served = ",".join(side for side in sides if side != "free")
            specs = [shape.spec for shape in shapes]
            words = [*_java(link, 0), *java, "io.faro.bench.OwnerMain", self.place, served, *specs]
            self.owner = Conversation("owner", words, TARGET / "ladder-owner.log")
            reached = {"free": "here"}
            for line in iter(lambda: self.owner.answer(START_SECONDS), "ready"):
                side, how = line.split(" ", 1)
                reached[side] = how
            # Without this, the disk would still be writing during the measurement.
            os.sync()
            words = [*_java(link, 1), *java, "io.faro.bench.ReaderMain", self.place]
            words += [f"{side}={reached[side]}" for side in sides]
            self.reader = Conversation("reader", words, TARGET / "ladder-reader.log")
            if self.reader.answer(START_SECONDS) != "ready":
                raise Broken("the reader did not start")
        except BaseException:
            self.close()
            raise

    def close(self):
        for process in (self.reader, self.owner):
            if process:
                process.stop()
        shutil.rmtree(self.place, ignore_errors=True)

    def _ask(self, command):
        word, _, said = self.reader.ask(command, ANSWER_SECONDS).partition(" ")
        if word != "done":
            raise RuntimeError(said)
        return said

    def check(self, side, shape):
        """Reads every block of a shape and compares its bytes."""
        self._ask(f"check {side} {shape.spec}")

    def run(self, side, shape, clients, seconds):
        """Makes one measurement and returns the figures of both processes together."""
        pids = (self.owner.pid, self.reader.pid)
        before = [cpu.process_nanos(pid) for pid in pids]
        answer = self._ask(f"run {side} {shape.spec} {clients} {int(seconds * 1000)}")
        spent = [cpu.process_nanos(pid) - had for pid, had in zip(pids, before)]
        blocks, size, nanos = map(int, answer.split())
        return {
            "blocks/s": blocks / (nanos / 1e9),
            "MB/s": size / 1e6 / (nanos / 1e9),
            "CPU µs/block": sum(spent) / 1e3 / blocks,
            "CPU ms/MB": sum(spent) / 1e6 / (size / 1e6),
            "owner's part of the CPU": spent[0] / max(1, sum(spent)),
        }

    def warm_up(self, side, shapes, seconds):
        """Runs small, middle and large blocks until the JIT compilers need little of the CPU."""
        pids = (self.owner.pid, self.reader.pid)
        for _ in range(WARM_UP_PASSES):
            before = [(cpu.process_nanos(pid), cpu.compiler_nanos(pid)) for pid in pids]
            for shape in (shapes[0], shapes[len(shapes) // 2], shapes[-1]):
                self.run(side, shape, 4, seconds)
            after = [(cpu.process_nanos(pid), cpu.compiler_nanos(pid)) for pid in pids]
            whole = sum(a[0] - b[0] for a, b in zip(after, before))
            if sum(a[1] - b[1] for a, b in zip(after, before)) < WARM_SHARE * whole:
                return
        say(f"{side}: after {WARM_UP_PASSES} passes of warm-up the JIT still takes much CPU")


def measure(ladder, shapes, sides, clients_of, rounds, seconds) -> Iterable[dict]:
    """Yields the rounds of all cells; a side that fails is left out from then on."""
    broken = set()

    def guarded(side, action, *words):
        try:
            return action(side, *words)
        except Broken:
            raise
        except RuntimeError as error:
            broken.add(side)
            return {"failed": str(error)}

    for side in sides:
        if failed := guarded(side, ladder.warm_up, shapes, seconds):
            yield {"side": NAMES[side], **failed}
    for shape in shapes:
        for side in sides:
            if side not in broken and (failed := guarded(side, ladder.check, shape)):
                yield {"side": NAMES[side], "block": shape.name, **failed}
        for clients in clients_of:
            for number in range(rounds + 1):
                # Each round begins with another side.
                turn = number % len(sides)
                for side in [*sides[turn:], *sides[:turn]]:
                    if side in broken:
                        continue
                    length = seconds if number else seconds / 2
                    found = guarded(side, ladder.run, shape, clients, length)
                    if number or "failed" in found:
                        yield {
                            "files on": ladder.file_system,
                            "block": shape.name,
                            "clients": clients,
                            "side": NAMES[side],
                            **found,
                        }


def file_system(path):
    """Returns the file system's type, as the kernel names it, from the longest mount point above
    the path."""
    path, found = os.path.realpath(path), ("", "unknown")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        point, kind = line.split()[1:3]
        inside = os.path.commonpath([point, path]) == point
        # A later mount covers an earlier one at the same place.
        if inside and len(point) >= len(found[0]):
            found = (point, kind)
    return found[1]
