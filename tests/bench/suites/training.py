"""What averaging in groups costs in accuracy, and what it saves in seconds."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import links
import results
import spark_home
from results import ROOT, Skipped, Suite, Table, figures, say

HERE = ROOT / "tests" / "bench" / "training"
TOOLS = ROOT / "tests" / "setup" / "tools"
SHARDS = {"even": "rows at random", "sorted": "rows by label"}
RING = "ring"
STEPS = 1_000
# Student's t for 95 %, by the number of seeds.
STUDENT = {
    2: 12.71,
    3: 4.303,
    4: 3.182,
    5: 2.776,
    6: 2.571,
    7: 2.447,
    8: 2.365,
    9: 2.306,
    10: 2.262,
}
HOSTS = 4
GIGABITS, SLOW_GIGABITS, CORE_GIGABITS = 0.1, 0.01, 0.05
SLOW_SECONDS = 2.0
PORT = "29511"
# By the network's name: the link between two switches, and whether a slow host moves.
NETWORKS = {
    "uniform": (0.0, False),
    "a slow host that moves": (0.0, True),
    "two racks, core 4:1": (CORE_GIGABITS, False),
}
TCP = {"fabric": "tcp"}
SIDES = {
    "Gloo, ring": {"mode": "full"},
    "Faro, ring": {"mode": "full", "settings": TCP},
    "Faro, grid": {"mode": "grid", "settings": TCP},
    "Faro, ring, local SGD 4": {"mode": "full", "every": 4, "settings": TCP},
    "Faro, DS-Sync in pairs": {"mode": "dssync", "group": 2, "settings": TCP},
    "Faro, pairs, slow apart": {
        "mode": "dssync",
        "group": 2,
        "settings": TCP,
        "slow_apart": True,
    },
    "Faro, pairs, by rack": {"mode": "dssync", "group": 2, "settings": TCP, "racks": True},
}
GLOO, BASE = "Gloo, ring", "Faro, ring"
GUARD_SECONDS = 600
# Steps that a process may be further than its file says.
MARGIN = 2


def options(parser):
    add = parser.add_argument
    add("--halves", nargs="+", choices=["accuracy", "seconds"], default=["accuracy", "seconds"])
    add("--seeds", type=int, nargs=2, default=[0, 10], metavar=("FROM", "TO"), help="(0 10)")
    add("--shards", nargs="+", choices=[*SHARDS], default=[*SHARDS])
    add("--networks", nargs="+", choices=[*NETWORKS], default=[*NETWORKS])
    add("--sides", nargs="+", choices=[*SIDES], default=[*SIDES])
    add("--seconds", type=float, default=120.0, help="of training on each network (120)")
    add("--library", type=Path, help="libfaro_jni.so of a release (built here)")


def data():
    return spark_home.cache_root() / "mnist1d.npz"


def tool(name):
    done = subprocess.run([TOOLS, name], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Skipped(f"there is no {name} to fetch")
    return done.stdout.strip()


def measure(chosen):
    if "accuracy" in chosen.halves:
        yield from accuracy(chosen)
    if "seconds" in chosen.halves:
        yield from seconds(chosen)


def accuracy(chosen):
    python = tool("numpy")
    # Small matrices: threads of OpenBLAS would wait for each other.
    given = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    first, last = (0, 1) if chosen.quick else chosen.seeds
    for seed in range(first, last):
        for how in chosen.shards:
            words = [python, HERE / "accuracy.py", data(), how, seed, 50 if chosen.quick else STEPS]
            for record in figures(words, env=given):
                yield {
                    "shards": SHARDS[how],
                    "way": record["way"],
                    "seed": seed,
                    "accuracy %": 100 * record["accuracy"],
                }


def seconds(chosen):
    python = tool("torch")
    library = chosen.library or built_library()
    for network in chosen.networks:
        core, moves = NETWORKS[network]
        try:
            made = links.Links(GIGABITS, HOSTS, core)
        except links.Unavailable as why:
            say(f"SKIPPED {network}: {why}")
            continue
        try:
            for side in chosen.sides:
                load = os.getloadavg()[0]
                found = trained(
                    python, library, made, side, moves, 4 if chosen.quick else chosen.seconds
                )
                yield {"network": network, "side": side, **found, "load before": load}
        finally:
            made.close()


def built_library():
    words = [ROOT / "tests" / "setup" / "build-native", "library", os.uname().machine]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return ROOT / done.stdout.strip()


def trained(python, library, made, side, moves, limit):
    """Trains for `limit` seconds and until all processes have done the same steps."""
    with tempfile.TemporaryDirectory(dir=results.TARGET) as scratch:
        place = Path(scratch)
        carried = made.carried()
        words = [python, HERE / "worker.py", data(), place, json.dumps(SIDES[side])]
        started = [
            subprocess.Popen(
                [*made.host_prefix(rank), *words],
                env=environment(library, side, rank),
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(HOSTS)
        ]
        try:
            stop(place, started, made, moves, limit, SIDES[side].get("every", 1))
            said = [one.communicate(timeout=GUARD_SECONDS)[0] for one in started]
        finally:
            for one in started:
                one.kill()
                one.wait()
            for rank in range(HOSTS):
                made.limit(rank, made.gigabits)
        if any(one.returncode for one in started):
            return {"failed": f"exit codes {[one.returncode for one in started]}"}
        ranks = [json.loads(one.splitlines()[-1]) for one in said]
        wanted = "gloo" if side == GLOO else "faro"
        if any(one["transport"] != wanted for one in ranks):
            return {"failed": f"averaged by {[one['transport'] for one in ranks]}"}
        steps = ranks[0]["steps"]
        whole = max(one["ended"] for one in ranks) - min(one["begun"] for one in ranks)
        return {
            "s for a step": whole / steps,
            "steps": steps,
            "MB for a step": (made.carried() - carried) / 1e6 / steps,
            "accuracy %": 100 * ranks[0]["accuracy"],
        }


def environment(library, side, rank):
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python"),
        "PYTHONDONTWRITEBYTECODE": "1",
        # Without its library, Gloo does it.
        "FARO_LIBRARY_PATH": "/nonexistent" if side == GLOO else str(library),
        "RANK": str(rank),
        "WORLD_SIZE": str(HOSTS),
        "MASTER_ADDR": links.host_address(0),
        "MASTER_PORT": PORT,
        "GLOO_SOCKET_IFNAME": "eth0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def stop(place, started, made, moves, limit, every):
    """When the time is over, says after which step all end: one that no process has reached, and
    that is an average's. Moves the slow host until they have ended."""
    files = [place / f"{rank}.steps" for rank in range(HOSTS)]
    while not all(file.exists() and file.read_text() for file in files):
        if any(one.poll() is not None for one in started):
            return
        time.sleep(0.05)
    begun, slow, last = time.monotonic(), None, place / "stop"
    while all(one.poll() is None for one in started):
        now = time.monotonic()
        due = int((now - begun) / SLOW_SECONDS) % HOSTS if moves else None
        if due != slow:
            if slow is not None:
                made.limit(slow, GIGABITS)
            made.limit(due, SLOW_GIGABITS)
            slow = due
        if now >= begun + limit and not last.exists():
            furthest = max(len(file.read_text().splitlines()) for file in files)
            part = place / "stop.part"
            part.write_text(str(-(-(furthest + MARGIN) // every) * every))
            part.rename(last)
        time.sleep(0.05)


def differences(records):
    """The accuracy of each way less that of the ring with the same seed, with its 95 % interval."""
    found = {}
    for record in records:
        if "way" in record:
            key = record["shards"], record["way"]
            found.setdefault(key, {})[record["seed"]] = record["accuracy %"]
    rows = []
    for (how, way), by_seed in found.items():
        ring = found.get((how, RING), {})
        pairs = [value - ring[seed] for seed, value in by_seed.items() if seed in ring]
        row = [how, way, f"{statistics.mean(by_seed.values()):.1f}", len(by_seed)]
        if way == RING or len(pairs) not in STUDENT:
            rows.append([*row, "–", "–"])
            continue
        mean = statistics.mean(pairs)
        half = STUDENT[len(pairs)] * statistics.stdev(pairs) / len(pairs) ** 0.5
        rows.append([*row, f"{mean:+.2f}", f"{mean - half:+.2f} to {mean + half:+.2f}"])
    if not rows:
        return []
    head = ["shards", "averaged by", "accuracy, %", "seeds", "less the ring's", "95 % interval"]
    return ["### Accuracy, by the way of averaging", results.grid(head, rows)]


SUITES = {
    "training": Suite(
        "Training by several processes that average their models",
        "Accuracy: sixteen workers in one process, MNIST-1D made here (16,000 rows, 4,000 for "
        f"the test), a network of 44,000 weights, {STEPS:,} steps of 16 rows at each worker; the "
        "accuracy is that of the exact mean of all models at the end, whatever else runs. Seeds "
        "choose rows, first weights and groups, and are the same for each way. *Slow apart*: two "
        "workers, others every 50 steps, go on alone; in every eighth round these groups and those "
        "by rack are of all workers. Seconds: four processes in network namespaces, a network of "
        "970,000 weights, rows by label, batches of 16, links of 100 Mbit/s in each direction with "
        "a queue of 20 ms; the slow host has 10 Mbit/s, and is another one every 2 s. All sides "
        "are `faro.torch.ModelAverager`; the processes share the machine's two cores.",
        [
            Table(
                "Seconds, by network",
                ["network", "side"],
                ["s for a step"],
                ["steps", "MB for a step", "accuracy %", "load before"],
                {"to Faro's ring": "s for a step"},
                ("side", BASE),
                {"network": ...},
            )
        ],
        measure,
        options,
        notes=differences,
        rounds=1,
    )
}
