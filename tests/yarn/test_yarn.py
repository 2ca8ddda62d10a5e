"""YARN, really: applications on two nodes, answers checked exactly, and the way their blocks took.

The nodes have the shuffle service of Spark 3.5.9, unless a test says otherwise: it serves the
applications of 4.3.0 too. `--all`, as in `make test-yarn`, runs all tests; without it those that
`make test` has.
"""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import guard
import pytest
import spark_home
from daemons import NODE_SERVICE, Cluster
from harness import build, launch, verdict
from submitted import Submitted

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "target" / "test-logs" / "yarn"
JOBS = ROOT / "tests" / "spark" / "jobs"
VERSIONS = ["4.3.0", "3.5.9"]
NEVER = {"spark.faro.fallback": "never"}
SERVICE = {"spark.shuffle.service.enabled": "true"}
FAST_RETRY = {"spark.shuffle.io.retryWait": "500ms", "spark.shuffle.io.maxRetries": "2"}
PUSH = {
    **SERVICE,
    "spark.shuffle.push.enabled": "true",
    # Spark pushes only what a serializer has made that can be cut anywhere.
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.shuffle.push.mergersMinStaticThreshold": "1",
    "spark.shuffle.push.mergersMinThresholdRatio": "0.01",
    # Waits until everything is merged, as if the shuffle were a large one.
    "spark.shuffle.push.minShuffleSizeToWait": "0",
    "spark.shuffle.push.minCompletedPushRatio": "1.0",
    "spark.extraListeners": "io.faro.e2e.MergedReads",
    **FAST_RETRY,
}


@pytest.fixture(scope="session")
def jobs_jar():
    return build.java_jar("jobs", sorted(JOBS.rglob("*.java")))


@pytest.fixture(scope="session")
def clusters(tmp_path_factory):
    """The cluster whose nodes have the shuffle service of a Spark; one at a time runs."""
    held: dict[str, Cluster] = {}

    def of(service):
        if service not in held:
            stop()
            place = tmp_path_factory.mktemp("yarn") / "cluster"
            held[service] = Cluster(place, LOGS / f"cluster-{service}", service)
            held[service].start()
        return held[service]

    def stop():
        for old in held.values():
            old.stop()
        held.clear()

    shutil.rmtree(LOGS, ignore_errors=True)
    yield of
    stop()
    launch.stop_all()


class Submitter:
    """`spark-submit` with what a test has in common with all others."""

    def __init__(self, clusters, faro_jar, jobs_jar, place, service="3.5.9"):
        self.cluster = clusters(service)
        self.faro_jar, self.jobs_jar, self.place = faro_jar, jobs_jar, place

    def start(self, version, name, cases, conf, mode="client", faro=True, jars="local"):
        spark = spark_home.versions_named([version])[0]
        scratch = self.place / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        return Submitted(
            *(self.cluster, spark, spark_home.ensure(spark), name, mode, conf),
            self.faro_jar if faro else None,
            ["io.faro.e2e.Jobs", self.jobs_jar, scratch, *cases],
            LOGS / f"{name}-{mode}-{version}",
            jars,
        )

    def run(self, version, name, cases, conf, **options):
        """What it left, and why it is not what it should be, apart from Faro's counters."""
        run = self.start(version, name, cases, conf, **options).wait()
        return run, problems_of(run, cases)


def problems_of(run, cases):
    # The NodeManager's words; those of Spark are about the same.
    beyond = re.compile(r".*beyond (?:the )?.*physical.* memory.*")
    logs = (run.driver_log, run.submit_log, *run.executor_logs.values())
    killed = [line[0][:200] for line in map(beyond.search, logs) if line]
    return verdict.problems_of(run, cases) + [f"killed for its memory: {one}" for one in killed]


def said(run, **more):
    words = [f"{run.counted('remoteBlocks')} blocks by Faro", f"{run.seconds:.0f} s"]
    return ", ".join([*words, *(f"{name} {value}" for name, value in more.items())])


@pytest.fixture
def submitter(clusters, faro_jar, jobs_jar, tmp_path):
    return Submitter(clusters, faro_jar, jobs_jar, tmp_path)


def check(problems, run, record_property, **more):
    record_property("detail", said(run, **more))
    if problems:
        summaries = run.summaries()
        text = f"{problems}; {said(run, **more)}; summaries {summaries}\n{run.causes()}"
        pytest.fail(text, pytrace=False)


@pytest.mark.short("client-4.3.0")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_mode(submitter, version, mode, record_property):
    """Client and cluster mode, with what README says."""
    run, problems = submitter.run(
        version, "mode", ["groupByKey", "sqlJoin", "sqlAggregate"], NEVER, mode=mode
    )
    check([*problems, *verdict.all_by_faro(run)], run, record_property)


@pytest.mark.parametrize("version", VERSIONS)
def test_uploaded_jars(submitter, version, record_property):
    """Without spark.yarn.jars: spark-submit uploads Spark itself, as it does by default."""
    run, problems = submitter.run(
        version, "uploaded", ["groupByKey", "sqlJoin"], NEVER, mode="cluster", jars="upload"
    )
    check([*problems, *verdict.all_by_faro(run)], run, record_property)


@pytest.mark.parametrize("version", VERSIONS)
def test_archive(submitter, version, tmp_path, record_property):
    """Spark in an archive that the nodes unpack, Faro's jar beside it."""
    home = spark_home.ensure(spark_home.versions_named([version])[0])
    archive = shutil.make_archive(str(tmp_path / "spark"), "tar", home / "jars")
    conf = {**NEVER, "spark.yarn.archive": f"file://{archive}"}
    run, problems = submitter.run(
        version, "archive", ["groupByKey", "sqlJoin"], conf, mode="cluster", jars="archive"
    )
    check([*problems, *verdict.all_by_faro(run)], run, record_property)


@pytest.mark.parametrize("version", VERSIONS)
def test_leaves_in_mid_job(submitter, version, record_property):
    """Dynamic allocation: outputs of an executor that left come from the service."""
    conf = {
        **SERVICE,
        **FAST_RETRY,
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "1",
        "spark.dynamicAllocation.initialExecutors": "2",
        "spark.dynamicAllocation.maxExecutors": "2",
        "spark.dynamicAllocation.executorIdleTimeout": "3s",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
        # A task on the node of most of its input would read files of that node.
        "spark.shuffle.reduceLocality.enabled": "false",
    }
    run, problems = submitter.run(version, "dynamic", ["leaveInMidJob"], conf)
    left = run.counted("fallbackBlocks")
    # A reader that knew the executor finds that nobody answers there.
    gone = ("executorGone", "unreachable", "connectionLost", "peerBackoff")
    others = run.counted("fallbacks") - sum(run.counted(f"fallbackReason.{r}") for r in gone)
    problems += [] if run.counted("remoteBlocks") else ["no block came through Faro"]
    problems += [] if left else ["no block came from the service"]
    problems += [f"{others} fall-backs for other reasons"] if others else []
    check(problems, run, record_property, **{"blocks by the service": left})


def merged(run):
    """What MergedReads printed."""
    line = (run.lines("MERGED ") or [""])[-1]
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", line)}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("rows", ["packed", "lz4"])
def test_push(submitter, version, rows, record_property):
    """Push-based shuffle: Spark's reader reads merged chunks, of row blocks as of lz4."""
    conf = {**PUSH, "spark.faro.rowBlocks": str(rows == "packed").lower()}
    cases = ["groupByKey", "sqlJoin", "sqlRepartition", "rowTypes"]
    run, problems = submitter.run(version, f"push-{rows}", cases, conf)
    read = merged(run)
    problems += [] if read.get("chunks") else ["no merged chunk was read"]
    problems += [] if run.counted("sparkReaders.pushMerged") else ["no pushMerged is counted"]
    if read.get("corruptChunks") or read.get("mergedFallBacks"):
        problems.append("merged chunks could not be read")
    if (run.counted("rowBlocks") > 0) != (rows == "packed"):
        problems.append(f"{run.counted('rowBlocks')} row blocks")
    check(problems, run, record_property, merged=read)


@pytest.mark.parametrize("version", VERSIONS)
def test_push_beside_originals(submitter, version, record_property):
    """Blocks that are too large to be pushed come beside merged chunks, through Faro."""
    conf = {**PUSH, **NEVER, "spark.shuffle.push.maxBlockSizeToPush": "2k"}
    run, problems = submitter.run(version, "push-some", ["sqlJoin", "rowTypes", "rowSizes"], conf)
    read = merged(run)
    problems += [] if read.get("chunks") else ["no merged chunk was read"]
    problems += verdict.all_by_faro(run)
    check(problems, run, record_property, merged=read)


@pytest.mark.parametrize("version", VERSIONS)
def test_push_without_faro(submitter, version, record_property):
    """The same with stock Spark: what the figures of the tests above are compared with."""
    cases = ["groupByKey", "sqlJoin", "sqlRepartition", "rowTypes"]
    run, problems = submitter.run(version, "push-stock", cases, PUSH, faro=False)
    read = merged(run)
    problems += [] if read.get("chunks") else ["no merged chunk was read"]
    check(problems, run, record_property, merged=read)


@pytest.mark.parametrize("version", VERSIONS)
def test_memory(submitter, version, record_property):
    """The NodeManager looks at the resident memory of executors, two of which are on one node."""
    conf = {
        **NEVER,
        "spark.executor.instances": "3",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "2",
        "spark.shuffle.readHostLocalDisk": "false",
        # As users run it: with the JVM's defaults.
        "spark.executorEnv.JAVA_TOOL_OPTIONS": "-Dfaro.test=1",
    }
    cases = ["megabyteBlocks", "sqlJoin", "sqlRepartition"]
    running = submitter.start(version, "memory", cases, conf)
    most: dict[str, tuple[int, int]] = {}
    while not running.ended() and time.monotonic() < running.started + guard.CEILING:
        for node in submitter.cluster.nodes:
            for container, now in node.resident_kib().items():
                most[container] = max(most.get(container, (0, 0)), now)
        time.sleep(0.2)
    run = running.wait()
    mib = [f"{all_of // 1024} ({shared // 1024})" for all_of, shared in sorted(most.values())]
    problems = problems_of(run, cases) + verdict.all_by_faro(run)
    if len(run.executor_logs) != 3:
        problems.append(f"{len(run.executor_logs)} executors for 3")
    check(problems, run, record_property, **{"resident MiB (shared)": mib})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("service", [True, False], ids=["service", "no-service"])
def test_node_lost(submitter, version, service, tmp_path, record_property):
    """A NodeManager and its containers are killed: map outputs are made again."""
    conf = {**FAST_RETRY, **(SERVICE if service else {}), "spark.task.maxFailures": "8"}
    cluster = submitter.cluster
    name = f"lost-{'service' if service else 'plain'}"
    # In cluster mode the driver's node would be of its own choice.
    running = submitter.start(version, name, ["nodeLost"], conf)
    lost = None
    try:
        running.await_line("NODE MAY GO")
        # Not the node of the application master, whose loss ends the application.
        lost = next(
            node
            for node in cluster.nodes
            if not any(container.endswith("_000001") for container in node.containers())
        )
        lost.kill()
        (tmp_path / "scratch" / "node-lost").touch()
        run = running.wait()
    finally:
        running.end()
        if lost:
            lost.start()
            cluster.await_nodes(len(cluster.nodes))
    check(problems_of(run, ["nodeLost"]), run, record_property)


@pytest.mark.parametrize("version", VERSIONS)
def test_decommissioned(submitter, version, record_property):
    """An executor is told to leave: the other one gets its files, and no map task runs again."""
    conf = {
        **NEVER,
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
        "spark.storage.decommission.rddBlocks.enabled": "true",
    }
    run, problems = submitter.run(version, "decommission", ["decommission"], conf)
    check([*problems, *verdict.all_by_faro(run)], run, record_property)


@pytest.mark.parametrize("version", VERSIONS)
def test_node_service(submitter, version, record_property):
    """`faro serve` beside each NodeManager: an executor is killed after the map stage and its files
    are deleted; no map task runs again."""
    conf = {**NEVER, "spark.faro.service.directory": NODE_SERVICE}
    with submitter.cluster.node_services():
        run, problems = submitter.run(version, "node-service", ["outputsOutliveOne"], conf)
    handed, read = run.counted("serviceOutputs"), run.counted("serviceBlocks")
    problems += [] if handed else ["no map output was handed over"]
    problems += [] if read else ["no block came from a service"]
    check(problems, run, record_property, **{"handed over": handed, "blocks of services": read})


@pytest.mark.parametrize("version", VERSIONS)
def test_files_are_removed(submitter, version, record_property):
    """spark.shuffle.service.removeShuffle: Spark's file modes, and the service deletes files."""
    conf = {**SERVICE, **FAST_RETRY, "spark.shuffle.service.removeShuffle": "true"}
    modes, problems = {}, []
    for faro in (True, False):
        name = "remove-faro" if faro else "remove-stock"
        run, found = submitter.run(version, name, ["shuffleFiles"], conf, faro=faro)
        problems += found
        modes[faro] = run.lines("MODES ")
    if modes[True] != modes[False] or not modes[True]:
        problems.append(f"Faro {modes[True]}, stock {modes[False]}")
    check(problems, run, record_property, modes=modes[True])


def test_newer_service(clusters, faro_jar, jobs_jar, tmp_path, record_property):
    """An application of 3.5.9 where the nodes have the service of 4.3.0."""
    submitter = Submitter(clusters, faro_jar, jobs_jar, tmp_path, service="4.3.0")
    conf = {**SERVICE, "spark.faro.fallback": "auto", **FAST_RETRY}
    cases = ["groupByKey", "sqlJoin", "killWithService"]
    run, problems = submitter.run("3.5.9", "newer-service", cases, conf)
    problems += [] if run.counted("remoteBlocks") else ["no block came through Faro"]
    check(problems, run, record_property, fallbacks=run.counted("fallbacks"))
