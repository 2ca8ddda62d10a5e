"""Executors that come, go, are killed or serve each other, and barrier stages."""

from .model import (
    ANY,
    AUTHENTICATE,
    CANDIDATE,
    FAULTS,
    FEW,
    KRYO,
    SCRATCH,
    SECRETS,
    TRIED,
    Scenario,
)

# How often Spark looks whether all files of an executor that leaves have gone; by default it does
# so each 30 s, which such an application would mostly wait for.
LEAVES_SOON = {"spark.storage.decommission.replicationReattemptInterval": "1s"}

NEWER = {FAULTS: "newer"}
# One that took the place of another, and that an application has come to.
NEWER_DAEMON = r"service ends\n((?!\nready ).)*\nready ((?!\nready ).)* ON: newer\n"
# One daemon from start to end, with blocks that it has served.
SERVED = r"((?!summary: ).)*summary: ((?!\n).)* served_blocks_total=[1-9]((?!\n).)*\n"

SCENARIOS = [
    Scenario(
        "shuffle-service",
        [*FEW, "aqeCoalesced", "killWithService"],
        {"spark.shuffle.service.enabled": "true"},
        with_service=True,
        faro=ANY,
        fallback="auto",
        # `make test-yarn` has Spark 3.5.9 with its service.
        must_count=("rowWriters",),
        waits=True,
    ),
    Scenario(
        "node-service",
        [
            "emptyHost",
            "outputsOutliveOne",
            "outputsOutliveAll",
            "rowsOutliveAll",
            "lentWhileServiceDies",
            "serviceKilled",
            "lentFilesClosed",
            "nothingKept",
        ],
        {"spark.faro.service.directory": f"{SCRATCH}/service"},
        node_service=True,
        faro_only=True,
        finds="map outputs that `faro serve` loses, keeps too long or lends wrongly",
        late_is_red=True,
        # RDDs with Java's serializer are read over the network, by Spark's reader.
        must_count=("serviceLocalBlocks", "serviceBlocks", "serviceOutputs", "serviceRegistered"),
        service_must_log=(
            r"found [1-9]\d* map outputs, \d+ bytes, of 1 applications",
            r"application \S+ has ended: 0 map outputs",
            r"summary: applications=0 executors=0 outputs=0 .* served_blocks_total=[1-9]",
        ),
        no_log_has=SECRETS,
        waits=True,
    ),
    # Thousands of map outputs, 16 tasks, and few open files, which are closed while they are read.
    Scenario(
        "node-service-many",
        ["manyLentRows", "manyLentRecords", "lentFileLostHalfRead"],
        {"spark.faro.service.directory": f"{SCRATCH}/service"},
        node_service=True,
        cores=8,
        open_files=2_048,
        faro_only=True,
        late_is_red=True,
        must_count=("serviceLocalBlocks", "serviceOutputs", "serviceRegistered"),
        no_log_has=SECRETS,
    ),
    Scenario(
        "node-service-replicas",
        ["hostLost"],
        {"spark.faro.service.directory": "/proc/self/cwd/service", "spark.faro.replicas": "1"},
        service_hosts=2,
        fallback="auto",
        faro_only=True,
        late_is_red=True,
        must_count=("replicaBlocks", "replicaBytes", "serviceOutputs"),
        waits=True,
    ),
    # Four applications on two hosts, two of them with the next release's jar, and one of stock
    # Spark. Both daemons are replaced by the next release's, then one by this release's again.
    Scenario(
        "rolling-upgrade",
        ["rollingUpgrade"],
        {"spark.faro.service.directory": "/proc/self/cwd/service"},
        service_hosts=2,
        beside=({}, NEWER, NEWER, None),
        faro_only=True,
        late_is_red=True,
        must_count=("serviceBlocks", "serviceOutputs", "serviceRegistered"),
        service_must_log=(
            rf"(?s)^({SERVED}){{3}}exit code 0\n({SERVED}){{2}}exit code 0\n$",
            rf"(?s)({NEWER_DAEMON}.*){{2}}",
        ),
    ),
    Scenario(
        "dynamic-allocation",
        ["dynamicAllocation"],
        {
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.timeout": "1s",
            "spark.dynamicAllocation.minExecutors": "1",
            "spark.dynamicAllocation.initialExecutors": "1",
            "spark.dynamicAllocation.maxExecutors": "2",
            "spark.dynamicAllocation.executorIdleTimeout": "2s",
            "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
            "spark.scheduler.minRegisteredResourcesRatio": "0",
        },
        waits=True,
    ),
    Scenario(
        "decommission",
        ["decommission"],
        {
            "spark.decommission.enabled": "true",
            "spark.storage.decommission.enabled": "true",
            "spark.storage.decommission.shuffleBlocks.enabled": "true",
            "spark.storage.decommission.rddBlocks.enabled": "true",
            **LEAVES_SOON,
        },
        late_is_red=True,
        waits=True,
    ),
    Scenario(
        "fallback-storage",
        ["decommissionAll"],
        {
            "spark.decommission.enabled": "true",
            "spark.storage.decommission.enabled": "true",
            "spark.storage.decommission.shuffleBlocks.enabled": "true",
            "spark.storage.decommission.fallbackStorage.path": f"file://{SCRATCH}/stored/",
            **LEAVES_SOON,
        },
        late_is_red=True,
        # The counters of executors that left are gone with them.
        faro=ANY,
        must_count=("rowReaders",),
        waits=True,
    ),
    Scenario(
        "decommission-unused",
        ["decommissionUnused"],
        {
            "spark.decommission.enabled": "true",
            "spark.storage.decommission.enabled": "true",
            "spark.storage.decommission.shuffleBlocks.enabled": "true",
            **LEAVES_SOON,
        },
        faro_only=True,
        late_is_red=True,
        executors=3,
        must_not_log="WARN Faro|Faro could not start",
        must_not_count=("failedBlocks",),
        waits=True,
    ),
    Scenario(
        "speculation",
        ["speculation", "rowsSpeculated"],
        {
            "spark.speculation": "true",
            "spark.speculation.interval": "50ms",
            "spark.speculation.quantile": "0.5",
            "spark.speculation.multiplier": "1.1",
            "spark.task.maxFailures": "1",
        },
        # Spark starts no second attempt on the host of the first.
        hosts=True,
        must_count=("rowWriters",),
        waits=True,
    ),
    # Executors are killed, and what replaces them has Spark's secret too. In barrier stages tasks
    # all-reduce: one fails, one executor is killed, two do not agree.
    Scenario(
        "killed",
        [
            *("killBetweenStages", "rowsKilled", "killInReduce", "killInMap"),
            *("allReduce", "allReduceTaskFails", "allReduceKilled", "allReduceMismatch"),
        ],
        {**AUTHENTICATE, "spark.task.maxFailures": "8", **KRYO},
        faro_only=True,
        finds="an executor's death, between stages or within one, that costs the answer or hangs",
        late_is_red=True,
        must_count=("sealedChannel", "remoteBlocks.shm"),
        no_log_has=SECRETS,
        waits=True,
    ),
    Scenario(
        "killed-fallback",
        ["killBetweenStages", "killInReduce", "killInMap"],
        {"spark.task.maxFailures": "8"},
        faro=TRIED,
        fallback="auto",
        faro_only=True,
        late_is_red=True,
        tier=CANDIDATE,
    ),
]
