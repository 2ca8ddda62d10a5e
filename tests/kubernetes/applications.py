"""What the tests have in common: how an application is submitted, what is done to its pods, and
what must be true of what it left."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import spark_home
from harness import verdict
from submitted import NAMESPACE, Submitted

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ["4.3.0", "3.5.9"]
CASES = ["groupByKey", "sqlJoin", "sqlAggregate"]
LOGS = ROOT / "target" / "test-logs" / "kubernetes"


class Submitter:
    """`spark-submit` with what a test has in common with all others."""

    def __init__(self, ready, place):
        self.ready, self.cluster, self.scratch = ready, ready.cluster, place / "scratch"
        self.running = []

    def start(self, version, name, cases, conf=None, main="Jobs", **options):
        self.ready.with_spark(version)
        name = f"{name}-{version.replace('.', '-')}"
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        # Pods come as Spark's user.
        self.scratch.chmod(0o1777)
        home = spark_home.ensure(spark_home.versions_named([version])[0])
        made = Submitted(
            *(self.cluster, self.ready.logs, home, version, name, conf or {}),
            *([f"io.faro.e2e.{main}", *cases], LOGS / name),
            scratch=self.scratch,
            **options,
        )
        self.running.append(made)
        return made

    def run(self, version, name, cases, conf=None, **options):
        run = self.start(version, name, cases, conf, **options).wait()
        return run, problems_of(run, cases)

    def pods_are_gone(self):
        (self.scratch / "pods-gone").touch()

    def close(self):
        for one in self.running:
            one.remove()


def problems_of(run, cases):
    found = verdict.problems_of(run, cases)
    if run.phase != "Succeeded":
        found.append(f"the driver's pod: {run.phase}; submit: {run.submit_log[-600:]}")
    killed = [name for name, why in run.ends.items() if "OOM" in why]
    return found + [f"{name} was killed for its memory" for name in killed]


def check(problems, run, record_property, **more):
    words = [f"{run.counted('remoteBlocks')} blocks by Faro", f"{run.seconds:.0f} s"]
    said = ", ".join([*words, *(f"{name} {value}" for name, value in more.items())])
    record_property("detail", said)
    if problems:
        pytest.fail(f"{problems}; {said}; ends {run.ends}", pytrace=False)


def delete(cluster, pods, grace):
    """As the cluster does it; a grace of 0: as a node does that has lost its power."""
    force = ("--force",) if grace == 0 else ()
    words = ("delete", "pod", *pods, "-n", NAMESPACE, f"--grace-period={grace}", *force)
    cluster.kubectl(*words)


def claims_are_older(cluster, seconds):
    """Whether Spark may use the claims of the application again."""
    claims = cluster.get("pvc", "-n", NAMESPACE)["items"]
    made = [claim["metadata"]["creationTimestamp"] for claim in claims]
    # The cluster's times are whole seconds.
    limit = datetime.now(timezone.utc) - timedelta(seconds=seconds + 1)
    return made and all(time < limit.strftime("%Y-%m-%dT%H:%M:%SZ") for time in made)


def after_pods_went(submitter, version, name, case, conf, count, grace, claims_age=None):
    """Runs the case, and deletes so many of its executors' pods when it says so; `claims_age`: and
    when its claims are older than so many seconds."""
    running = submitter.start(version, name, [case], conf, main="PodJobs")
    running.await_line("PODS MAY GO|CASE|JOBS DONE")
    if claims_age:
        submitter.cluster.await_(
            "the claims should be older", lambda: claims_are_older(submitter.cluster, claims_age)
        )
    delete(submitter.cluster, running.running_executors()[:count], grace)
    submitter.pods_are_gone()
    run = running.wait()
    problems = problems_of(run, [case])
    problems += [] if run.counted("remoteBlocks") else ["no block came through Faro"]
    problems += [f"{n} fall-backs"] if (n := run.counted("fallbacks")) else []
    return run, problems
