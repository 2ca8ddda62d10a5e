"""The suites of native code without Spark, and of one map task's writer."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from results import ROOT, Suite, Table, built, figures, in_guest, size

BENCH = Path(__file__).resolve().parents[1]
KIB, MIB = 1 << 10, 1 << 20


def binary(parser):
    parser.add_argument("--binary", type=Path, help="the program, built (builds it)")


def softroce(chosen):
    seconds = 0.2 if chosen.quick else 1
    program = chosen.binary or built("faro-cli", "faro", "bin")
    # A round has twelve cells with four tools each.
    timeout = 120 + chosen.rounds * 48 * (10 + 3 * seconds)
    command = [BENCH / "softroce" / "guest", Path(program).resolve(), chosen.rounds, seconds]
    for record in in_guest(2, command, timeout):
        yield {**record, "transfer": f"{record['operation']} {size(record['size'])}"}


def rows(chosen):
    bench = ["cargo", "bench", "--locked", "-p", "faro-rows", "--bench", "row_blocks", "--"]
    for one in figures([*bench, 0.05 if chosen.quick else 0.5, chosen.sets], cwd=ROOT):
        ours, codecs = (one[f"{a}_ns"] + one[f"{b}_ns"] for a, b in WAYS)
        yield {
            **one,
            "CPU of both / codec's": ours / codecs,
            "bytes / codec's": one["packed_share"],
        }


WAYS = (("pack", "unpack"), ("encode", "decode"))


def writer(chosen):
    """CPU of one map task, Faro's writer beside Spark's."""
    home = chosen.home / "jars"
    # A SparkContext in a plain JVM needs these packages of Java 17 to be opened.
    opened = ["lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent"]
    with tempfile.TemporaryDirectory(prefix="faro-bench-writer-") as place:
        path = f"{place}:{chosen.jar}:{home}/*"
        source = BENCH / "writer" / "MapWrites.java"
        subprocess.run(["javac", "-nowarn", "-cp", path, "-d", place, source], check=True)
        java = ["java", "-Xmx3g", f"-Dspark.local.dir={place}", "-Dspark.driver.host=127.0.0.1"]
        java += [
            f"--add-opens=java.base/{name}=ALL-UNNAMED"
            for name in (
                *(f"java.{one}" for one in opened),
                "java.util.concurrent.atomic",
                "sun.nio.ch",
            )
        ]
        for count in [10_000] if chosen.quick else chosen.rows:
            words = [*java, "-cp", path, "io.faro.bench.MapWrites", count, chosen.rounds]
            words = [str(word) for word in [*words, *chosen.partitions]]
            done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
            for line in done.stdout.splitlines():
                if line.startswith("MEASURED "):
                    found = [int(word) for word in line.split()[1:]]
                    partitions, _, drain, spark, faro, spark_bytes, faro_bytes = found
                    yield {
                        "rows": f"{count:,}",
                        "partitions": f"{partitions:,}",
                        "Faro / Spark, CPU of writing": (faro - drain) / (spark - drain),
                        "Faro / Spark, bytes": faro_bytes / spark_bytes,
                    }


def writer_options(parser):
    add = parser.add_argument
    add("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    add("--partitions", nargs="+", default=["200", "1000", "4000", "8000", "16000"])


def load(chosen):
    program = chosen.binary or built("faro-endpoint", "load")
    groups = chosen.groups or list(dict.fromkeys(group for group, _, _ in cells()))
    some = [one for one in cells() if one[0] in groups]
    for _ in range(chosen.rounds):
        for group, name, options in some[:1] if chosen.quick else some:
            words = [
                f"{key}={value}" for key, value in {"fabric": chosen.fabric, **options}.items()
            ]
            one = figures([program, *words])[-1]
            blocks = max(1, one["blocks"])
            yield {
                "group": group,
                COLUMNS[group]: name,
                "blocks/s": one["blocks"] / one["seconds"],
                "MB/s": one["bytes"] / one["seconds"] / 1e6,
                "CPU µs/block, client": one["client_cpu_ns"] / blocks / 1e3,
                "server": one["server_cpu_ns"] / blocks / 1e3,
                "held, MiB": one["client_high_bytes"] / MIB,
                "longest, ms": one["longest_ms"],
                "slowest client / mean": one["slowest_client"],
                **{key: one[key] for key in ("busy", "descriptors")},
                **({"failed": f"{one['failures']} requests"} if one["failures"] else {}),
            }


def load_options(parser):
    binary(parser)
    parser.add_argument("--fabric", choices=["tcp", "shm"], default="tcp", help="(tcp)")
    parser.add_argument("--groups", nargs="+", choices=list(COLUMNS), help="(all)")


COLUMNS = {
    "peers": "clients x readers",
    "sizes": "reply",
    "outputs": "map outputs",
    "waiting": "under way at once",
    "shortage": "case",
    "stopped": "stopped peers",
    "crowd": "clients x requests",
}
TITLES = {
    "peers": "Clients and readers",
    "sizes": "Sizes of replies",
    "outputs": "Map outputs",
    "waiting": "Requests under way at once",
    "shortage": "More than the arena holds",
    "stopped": "Peers that stop",
    "crowd": "Few and many at once",
}


def cells():
    """The cells of the suite `load`: group, name, and the driver's options."""
    for peers in (1, 10, 100, 1000):
        for readers in (1, 8, 32):
            # At least two requests for each reader.
            requests = max(20_000, 2 * peers * readers)
            options = {"peers": peers, "readers": readers, "requests": requests}
            yield "peers", f"{peers:,} x {readers}", options
    for block in (KIB, 4 * KIB, 20 * KIB, 64 * KIB, 256 * KIB, MIB, 20 * MIB):
        # About 400 MB in all, within bounds.
        options = {"readers": 8, "block": block}
        options["partitions"] = max(4, min(400, 400 * MIB // block))
        options["requests"] = max(24, min(20_000, 400 * MIB // block))
        yield "sizes", size(block).replace("B", "iB"), options
    for count in (100, 1_000, 5_000, 20_000, 50_000):
        # As a reduce task asks: one partition of 1 KiB of each of 50 map outputs.
        options = {"outputs": count, "partitions": 200, "block": KIB, "blocks": 50, "readers": 8}
        yield "outputs", f"{count:,} of 200", {**options, "requests": max(1_000, 2 * count // 50)}
    options = {**options, "outputs": 1_000, "partitions": 50_000, "requests": 1_000}
    yield "outputs", "1,000 of 50,000", options
    for at_once in (100, 1_000, 4_000, 16_000):
        options = {"window": at_once, "block": KIB, "partitions": 4_000, "requests": 32_000}
        yield "waiting", f"{at_once:,}", options
    # More at once than the arena holds; the cells of a pair move the same bytes.
    whole = {"block": 20 * MIB, "partitions": 8, "requests": 32, "limit": 64}
    yield "shortage", "20 MiB, one after the other, limit 64m", {**whole, "readers": 1}
    yield "shortage", "20 MiB, 8 at once, limit 64m", {**whole, "readers": 8}
    many = {"block": MIB, "partitions": 300, "requests": 900, "limit": 64}
    yield "shortage", "1 MiB, one after the other, limit 64m", {**many, "readers": 1}
    yield "shortage", "1 MiB, 300 at once, limit 64m", {**many, "readers": 300}
    tasks = {"block": MIB, "window": 48, "partitions": 400, "requests": 3_200}
    for readers in (4, 8, 32):
        yield "shortage", f"{readers} tasks x 48 MiB, limit 256m", {**tasks, "readers": readers}
    many = {"block": MIB, "partitions": 300, "requests": 4_000}
    # Eight clients beside eight more that ask for 64 MiB each and then take nothing.
    for limit in (64, 256):
        for beside in (0, 8):
            options = {**many, "peers": 8, "limit": limit, "stopped": beside}
            yield "stopped", f"{beside} stopped, limit {limit}m", options
    # One client's 48 requests hold all that they may hold, and none of them waits.
    for peers, at_once in ((1, (16, 48, 800)), (8, (2, 100))):
        for readers in at_once:
            options = {**many, "limit": 64, "peers": peers, "readers": readers}
            yield "crowd", f"{peers} x {readers} at once, limit 64m", options
    # Each client asks once for all that it wants.
    six = {"block": MIB, "partitions": 300, "requests": 480, "limit": 64}
    yield "crowd", "6 x 80 at once, limit 64m", {**six, "peers": 6, "readers": 80}


LOADED = Table(
    "",
    [],
    ["blocks/s"],
    [
        *("MB/s", "CPU µs/block, client", "server", "held, MiB", "busy", "longest, ms"),
        "descriptors",
    ],
)
TOOLS = ("tool", "perftest")
SUITES = {
    "softroce": Suite(
        "RDMA on SoftRoCE",
        "Two hosts with an RDMA device each in one user-mode Linux guest of 2 processors. The "
        "device is software (rdma_rxe), so the figures compare the software above the device and "
        "say nothing about a NIC. *perftest* and *UCX* poll without sleeping. *Faro* is `faro "
        "perf` with 64 transfers in flight, asleep between completions; `--spin` does not sleep. "
        "The tools take turns at each size. Latency is half of the round trip for writes, all of "
        "it for reads.",
        [
            Table(
                "Bandwidth",
                ["transfer", "tool"],
                ["MB/s"],
                ratios={"to perftest's": "MB/s"},
                base=TOOLS,
            ),
            Table("Latency", ["transfer", "tool"], ["µs"], ["p99"], {"to perftest's": "µs"}, TOOLS),
            Table(
                "What the software adds, per transfer",
                ["mode", "transfer", "tool"],
                [],
                [
                    f"{side}'s {name}"
                    for name in ("posts", "work requests", "completions", "wakeups", "poll calls")
                    for side in ("client", "server")
                ],
            ),
        ],
        softroce,
        binary,
        rounds=3,
    ),
    "rows": Suite(
        "Row blocks, by kind of rows",
        "200,000 rows of each set in blocks of 32 KiB, compressed by the codec alone and with row "
        "blocks as the writer makes them, and decompressed to batches: nanoseconds of one thread's "
        "processor time for a row. The sets are generated (`native/rows/benches/sets`); the format "
        "was tuned on the first nine at most.",
        [
            Table(
                "By set of rows",
                ["set", "codec"],
                [],
                [
                    *("bytes / codec's", "encode_ns", "pack_ns", "decode_ns", "unpack_ns"),
                    "CPU of both / codec's",
                ],
            )
        ],
        rows,
        lambda parser: parser.add_argument("--sets", default="", help="those with this text (all)"),
    ),
    "writer": Suite(
        "A map task's writer",
        "CPU of one map task without that of making its rows, and the bytes of its file. Spark's "
        "is a bypass-merge writer up to 200 partitions and a radix sort above.",
        [
            Table(
                "By partitions",
                ["rows", "partitions"],
                ["Faro / Spark, CPU of writing"],
                ["Faro / Spark, bytes"],
            )
        ],
        writer,
        writer_options,
        needs_jar=True,
        rounds=6,
    ),
    "load": Suite(
        "Measured: one server under load",
        "One server in a process of its own; all clients are endpoints of another process, each "
        "with its own threads and arena, on this machine, with defaults (arena of 256 MiB) where a "
        "line does not say otherwise. *Held*: the most that blocks and buffers of one client held. "
        "*Busy*: requests that the server had no room for and that were asked for again. "
        "*Longest*: from asking to the last block.",
        [
            replace(LOADED, title=TITLES[group], by=[column], only={"group": group})
            for group, column in COLUMNS.items()
        ],
        load,
        load_options,
        lambda _: ["![One server under load](scaling/load.svg)"],
        folder="design/scaling",
        rounds=3,
    ),
}
