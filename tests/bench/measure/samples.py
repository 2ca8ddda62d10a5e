"""Attributes the executors' CPU to parts: perf's samples, by their call stacks.

The newest call of a stack that matches a pattern decides. Java's compiler inlines, so a small
method counts for its caller. Native code has no frame pointers, so its newest call stands alone.
Needs perf of Debian's linux-perf.
"""

import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from itertools import chain
from pathlib import Path

from harness import launch

from . import sides as known
from . import workloads

CODEC, WRITE, READ, TRANSPORT = "codec", "write", "read", "transport"
QUERY, SPARK, JVM = "query", "spark", "jvm"
ROOT = Path(__file__).resolve().parents[3]
PARTS = (CODEC, WRITE, READ, TRANSPORT, QUERY, SPARK, JVM)
HERTZ = 999
RECORD_SECONDS = 20
# perf may end early, because threads end while it looks at a process.
ATTEMPTS = 3

# Parts by a thread's name, for threads that run no task.
THREADS = (
    (r"C[12] Compiler|Sweeper|GC |G1 |VM |Monitor Deflati|Signal|Common-Clea|Finalizer", JVM),
    (r"faro|shuffle-", TRANSPORT),
)
# Parts by a call of a task's thread, from the newest call on.
CALLS = (
    (r"LZ4|[Ll]z4|jpountz|[Xx][Xx][Hh]ash32|XXH32|[Zz]std|block_hash", CODEC),
    (r"io\.faro\.spark\.write|BlockCompressor", WRITE),
    (r"io\.faro\.|Java_io_faro|faro_|ShuffleBlockFetcherIterator|BlockStoreShuffleReader", READ),
    (r"DeserializationStream|BufferReleasingInputStream|shuffle\.checksum\..*Input", READ),
    (r"shuffle\.sort|ShuffleWrite|SerializationStream|DiskBlockObjectWriter|IndexShuffle", WRITE),
    (r"network\.|io\.netty", TRANSPORT),
    (
        r"spark\.sql\.|GeneratedClass|scala\.collection|unsafe\.sort|XXH64|spark\.util\.random",
        QUERY,
    ),
    (r"UTF8String|unsafe\.map|catalyst|spark\.rdd\.|Partitioner", QUERY),
)
_THREADS = [(re.compile(pattern), part) for pattern, part in THREADS]
_CALLS = [(re.compile(pattern), part) for pattern, part in CALLS]


def measure(
    home, faro_jar, target, sides, groups, warm_ups, rounds, progress, scratch=workloads.TMPFS
):
    """Returns the runs per workload and side, and their samples by part. An error ends the run.
    Shuffle files are in a folder in `scratch`."""
    jar = workloads.compiled(home, target)
    every = known.all_sides(faro_jar)
    java_options = f"-XX:+PreserveFramePointer -Dfaro.library.path={_library()}"
    results = {}
    for group in groups:
        for side in sides:
            place = Path(tempfile.mkdtemp(prefix="faro-bench-", dir=scratch))
            logs = target / "cpu-logs" / "-".join(group.names)
            logs.mkdir(parents=True, exist_ok=True)
            conf = {**group.conf, "spark.executor.extraJavaOptions": java_options}
            application = workloads.Application(
                side, every[side], conf, home, place / side, jar, logs
            )
            try:
                application.await_ready(group.prepare)
                for name in group.names:
                    figures = _sampled(application, group.commands[name], warm_ups, rounds, place)
                    results.setdefault(name, {})[side] = figures
                    progress(f"{name} {side}: {sum(figures['samples'].values()):,} samples")
            finally:
                application.stop()
                shutil.rmtree(place, ignore_errors=True)
    return results, {}


def _library():
    """Returns the native library with its symbols, which the jar's library lacks."""
    command = ["cargo", "build", "--quiet", "--release", "--locked", "-p", "faro-jni"]
    subprocess.run(command, cwd=ROOT, check=True)
    return ROOT / "target" / "release" / "libfaro_jni.so"


def _sampled(application, command, warm_ups, rounds, place):
    for _ in range(warm_ups):
        _run(application, command)
    for _ in range(ATTEMPTS):
        runs = _recorded(application, command, rounds, place)
        counted = _counted(application.pids, place / "samples")
        if counted:
            return {"runs": runs, "samples": dict(counted)}
    raise RuntimeError(f"no samples: {(place / 'perf.log').read_text()}")


def _run(application, command):
    figures = application.run(command)
    application.clean()
    return figures


def _recorded(application, command, rounds, place):
    data = place / "samples"
    # The file belongs to the workload before. If perf does not start, it must not be counted again.
    data.unlink(missing_ok=True)
    pids = ",".join(map(str, application.pids))
    perf = ["perf", "record", "-q", "-F", str(HERTZ), "-g", "-o", data, "-p", pids]
    with (place / "perf.log").open("w") as log, subprocess.Popen(perf, stderr=log) as record:
        runs = [_run(application, command) for _ in range(rounds)]
        record.send_signal(signal.SIGINT)
        record.wait(RECORD_SECONDS)
    return runs


def _counted(pids, data):
    maps = [Path(f"/tmp/perf-{pid}.map") for pid in pids]
    try:
        for pid in pids:
            jcmd = [launch.java_program("jcmd"), str(pid), "Compiler.perfmap"]
            subprocess.run(jcmd, check=True, stdout=subprocess.DEVNULL)
        return _parts(data)
    finally:
        for written in maps:
            written.unlink(missing_ok=True)


def _parts(data):
    counted = Counter()
    command = ["perf", "script", "-i", data, "-F", "comm,ip,sym"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace"
    ) as script:
        stack = []
        for line in chain(script.stdout, [""]):
            if line.strip():
                stack.append(line.strip())
            elif stack:
                counted[part_of(stack[0], stack[1:])] += 1
                stack = []
    return counted


def part_of(thread, calls):
    """Returns the part of a sample. `calls` must have the newest call first."""
    for pattern, part in _THREADS:
        if pattern.match(thread):
            return part
    if thread.startswith("Executor task"):
        for call in calls:
            for pattern, part in _CALLS:
                if pattern.search(call):
                    return part
    return SPARK
