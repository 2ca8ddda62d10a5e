"""The transport ladder: an owner and a reader process; the sides take turns on the same files."""

import os
import shutil
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path

from harness.conversation import Broken, Conversation

from . import cpu, links, places

HERE = Path(__file__).resolve().parents[1]
START_SECONDS = 120
ANSWER_SECONDS = 150
WARM_UP_PASSES = 12
WARM_SHARE = 0.03  # of the CPU of both processes


def compiled(home, faro_jar, target):
    """Compiles the harness's classes against the Spark and the jar that are measured."""
    classes = target / "ladder-classes"
    shutil.rmtree(classes, ignore_errors=True)
    classes.mkdir(parents=True)
    subprocess.run(
        [
            "javac",
            "-nowarn",
            "-Xlint:none",
            "-cp",
            f"{home}/jars/*:{faro_jar}",
            "-d",
            str(classes),
            *map(str, sorted((HERE / "ladder").rglob("*.java"))),
        ],
        check=True,
    )
    return classes


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
    def __init__(self, home, faro_jar, shapes, sides, target, say, kind=places.TMPFS, link=None):
        """`link`: the owner is on the first of its hosts, the reader on the second."""
        self.say = say
        self.sides = sides
        self.notes = []  # A reader of the figures must know these.
        self.place = places.folder(kind, target)
        self.file_system = places.file_system(self.place)
        self.owner = self.reader = None
        try:
            classes = compiled(home, faro_jar, target)
            class_path = f"{classes}:{faro_jar}:{home}/jars/*"
            options = [
                *jvm_options(class_path),
                "-Xms1g",
                "-Xmx2g",
                *os.environ.get("FARO_BENCH_JAVA_OPTIONS", "").split(),
                "-cp",
                class_path,
            ]
            total = sum(shape.total_bytes for shape in shapes)
            self.say(
                f"writing {total / 1e9:.1f} GB of map outputs to {self.place} "
                f"({self.file_system}) ..."
            )
            served = [side for side in sides if side != "free"]
            self.owner = Conversation(
                "owner",
                [
                    *_java(link, 0),
                    *options,
                    "io.faro.bench.OwnerMain",
                    self.place,
                    ",".join(served),
                    *[shape.spec for shape in shapes],
                ],
                target / "ladder-owner.log",
            )
            reached = {"free": "here"}
            for line in iter(lambda: self.owner.answer(START_SECONDS), "ready"):
                side, how = line.split(" ", 1)
                reached[side] = how
            # Without this, the disk would still be writing during the measurement.
            os.sync()
            self.reader = Conversation(
                "reader",
                [
                    *_java(link, 1),
                    *options,
                    "io.faro.bench.ReaderMain",
                    self.place,
                    *[f"{side}={reached[side]}" for side in sides],
                ],
                target / "ladder-reader.log",
            )
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
        answer = self.reader.ask(command, ANSWER_SECONDS).split(" ", 1)
        if answer[0] != "done":
            raise RuntimeError(answer[1])
        return answer[1]

    def check(self, side, shape):
        """Reads every block of a shape and compares its bytes."""
        self._ask(f"check {side} {shape.spec}")

    def run(self, side, shape, clients, seconds):
        """Makes one measurement and returns the figures of both processes together."""
        pids = (self.owner.pid, self.reader.pid)
        before = [cpu.process_nanos(pid) for pid in pids]
        answer = self._ask(f"run {side} {shape.spec} {clients} {int(seconds * 1000)}")
        spent = [cpu.process_nanos(pid) - b for pid, b in zip(pids, before)]
        blocks, size, nanos = map(int, answer.split())
        return {
            "blocks_per_second": blocks / (nanos / 1e9),
            "mb_per_second": size / 1e6 / (nanos / 1e9),
            "cpu_us_per_block": sum(spent) / 1e3 / blocks,
            "cpu_ms_per_mb": sum(spent) / 1e6 / (size / 1e6),
            "owner_share": spent[0] / max(1, sum(spent)),
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
            compiling = sum(a[1] - b[1] for a, b in zip(after, before))
            if compiling < WARM_SHARE * whole:
                return
        self.notes.append(
            f"{side}: after {WARM_UP_PASSES} passes of warm-up the JIT still took "
            f"{100 * compiling / whole:.0f} % of the CPU"
        )
        self.say(self.notes[-1])

    def threads(self, side, shape, clients, seconds):
        """Returns the CPU of one longer measurement by thread name, in µs per block."""
        pids = {"owner": self.owner.pid, "reader": self.reader.pid}
        before = {name: cpu.thread_nanos(pid) for name, pid in pids.items()}
        # Requester threads end with the run, so their CPU time is the process's minus that of the
        # other threads.
        whole = {name: cpu.process_nanos(pid) for name, pid in pids.items()}
        answer = self._ask(f"run {side} {shape.spec} {clients} {int(seconds * 1000)}")
        blocks, size, _ = map(int, answer.split())
        result = {}
        for name, pid in pids.items():
            total = cpu.process_nanos(pid) - whole[name]
            by_thread = cpu.spent(before[name], cpu.thread_nanos(pid))
            rest = total - sum(by_thread.values())
            if name == "reader":
                by_thread["bench-client"] = by_thread.get("bench-client", 0) + max(0, rest)
            result[name] = {
                thread: {"us_per_block": nanos / 1e3 / blocks, "ms_per_mb": nanos / size}
                for thread, nanos in sorted(by_thread.items(), key=lambda e: -e[1])
            }
        return result

    def counters(self, side):
        return self._ask(f"counters {side}")


def measure(ladder, shapes, clients_list, rounds, seconds, progress):
    """Measures all cells. Returns a list of rounds per cell and side, and the error of each side
    that failed."""
    cells, broken = [], {}
    total = len(shapes) * len(clients_list)
    started = time.monotonic()
    for side in ladder.sides:
        _guard(broken, side, lambda s=side: ladder.warm_up(s, shapes, seconds))
    for shape in shapes:
        for side in ladder.sides:
            if side not in broken:
                _guard(
                    broken,
                    side,
                    lambda s=side, p=shape: ladder.check(s, p),
                    f"checking {shape.name}",
                )
        for clients in clients_list:
            cell = {
                "shape": shape.name,
                "block_bytes": shape.block_bytes,
                "clients": clients,
                "sides": {side: [] for side in ladder.sides},
            }
            for round_number in range(rounds + 1):
                # Each round begins with another side.
                turn = round_number % len(ladder.sides)
                for side in ladder.sides[turn:] + ladder.sides[:turn]:
                    if side in broken:
                        continue
                    length = seconds if round_number else seconds / 2
                    figures = _guard(
                        broken,
                        side,
                        partial(ladder.run, side, shape, clients, length),
                        f"{shape.name}, {clients} clients",
                    )
                    if figures and round_number:
                        cell["sides"][side].append(figures)
            cells.append(cell)
            progress(len(cells), total, cell, time.monotonic() - started)
    return cells, broken


def _guard(broken, side, action, where="warm-up"):
    """Runs `action`. If it fails, notes the error in `broken` under the side, so that the other
    sides continue."""
    try:
        return action()
    except RuntimeError as error:
        if isinstance(error, Broken):
            raise
        broken[side] = f"{where}: {error}"
        return None
