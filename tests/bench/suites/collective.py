"""The collective of barrier stages: the SGD example in its three modes."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

import spark_home
from programs import loaded
from results import ROOT, Skipped, Suite, Table, say

HERE = Path(__file__).resolve().parents[1] / "collective"
EXAMPLE = ROOT / "docs" / "examples" / "sgd"
# The other models are left out, because one processor runs all hosts of the guest.
GUEST_MODEL = "digits.csv:512:0.05:100:0.9"


def options(parser):
    add = parser.add_argument
    add("--places", nargs="+", choices=["machine", "guest"], default=["machine", "guest"])
    add("--hosts", type=int, default=4, help="of the guest (4)")
    add("--rate", nargs="+", default=["", "20mbit"], help="of the guest's links")
    add("--fabric", nargs="+", default=["verbs", "tcp"], help="in the guest")


def measure(chosen):
    sgd = loaded("../docs/examples/sgd/run")
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as place:
        log = Path(place, "log")
        if "machine" in chosen.places:
            words = [EXAMPLE / "run", "--repeats", chosen.rounds, "--log", log]
            words += ["--jar", chosen.jar, "--version", chosen.version]
            words += ["--quick"] if chosen.quick else []
            subprocess.run([str(w) for w in words], check=True, stdout=subprocess.DEVNULL)
            yield from records("this machine, 4 tasks", log.read_text())
        # A guest takes minutes to start a cluster.
        for rate in chosen.rate if "guest" in chosen.places and not chosen.quick else []:
            for fabric in chosen.fabric:
                log.unlink(missing_ok=True)
                try:
                    in_the_guest(sgd, chosen, rate, fabric, log)
                except Skipped as why:
                    say(f"SKIPPED the guest: {why}")
                    return
                name = f"guest, {chosen.hosts} hosts, {fabric}, links {rate or 'as they are'}"
                yield from records(name, log.read_text())


def in_the_guest(sgd, chosen, rate, fabric, log):
    version = spark_home.all_versions()[-1]
    environment = {
        **os.environ,
        "SPARK_HOME": str(spark_home.ensure(version)),
        "FABRIC": fabric,
        "JOB": str(sgd.example_jar(chosen.jar)),
        "FARO_JAR": str(chosen.jar),
    }
    model = spark_home.cache_root() / "sklearn" / GUEST_MODEL
    run = [ROOT / "tests" / "softroce" / "run", "--hosts", chosen.hosts, "--cpus", 1]
    run += ["--memory", "8G", "--keep", log.parent, "--timeout", 1800]
    run += [*(["--rate", rate] if rate else []), "--", HERE / "guest"]
    run += [log, chosen.hosts, chosen.hosts, chosen.rounds, 1, model]
    done = subprocess.run(
        [str(word) for word in run],
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode == 77:
        raise Skipped("no guest is possible here")
    if done.returncode or "SGD DONE" not in log.read_text():
        raise RuntimeError(f"the guest ended with {done.returncode}: {done.stderr[-3000:]}")


def records(place, text):
    """A record for each run that the example's log has."""
    for line in re.findall(r"^RESULT (.*)$", text, re.M):
        row = dict(pair.split("=") for pair in line.split())
        yield {
            "place": place,
            "mode": row["mode"],
            "model": f"{row['data']}, {row['hidden']} hidden, {row['weights']} weights",
            "s to the target": float(row["seconds_to_target"]),
            "s in all": float(row["seconds"]),
            "rounds to it": float(row["rounds_to_target"]),
            "accuracy": float(row["accuracy"]),
            "part in rounds": float(row["in_rounds"]),
        }


SUITES = {
    "collective": Suite(
        "The SGD example in its modes",
        "Stochastic gradient descent in barrier stages (docs/examples/sgd): the modes take turns "
        "within each application.",
        [
            Table(
                "By place",
                ["place", "model", "mode"],
                ["s to the target", "s in all"],
                ["rounds to it", "accuracy", "part in rounds"],
            )
        ],
        measure,
        options,
        needs_jar=True,
        rounds=3,
    )
}
