"""Executors that come, go, are killed or serve each other, and barrier stages."""

from .model import ANY, FEW, KRYO, SCRATCH, SECRETS, TRIED, Scenario

SCENARIOS = [
    Scenario(
        "shuffle-service",
        [*FEW, "aqeCoalesced", "killWithService"],
        {"spark.shuffle.service.enabled": "true"},
        with_service=True,
        faro=ANY,
        fallback="auto",
        must_count=("rowWriters",),
        waits=True,
    ),
    Scenario(
        "node-service",
        ["outputsOutliveOne", "outputsOutliveAll", "rowsOutliveAll", "nothingKept"],
        {"spark.faro.service.directory": f"{SCRATCH}/service"},
        node_service=True,
        faro_only=True,
        newest=True,
        must_count=("serviceBlocks", "serviceOutputs"),
        service_must_log=(
            r"application \S+ has ended: 0 map outputs",
            r"summary: applications=0 outputs=0 .* served_blocks_total=[1-9]",
        ),
        no_log_has=SECRETS,
        waits=True,
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
        },
        newest=True,
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
        },
        # The counters of executors that left are gone with them.
        faro=ANY,
        newest=True,
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
        },
        faro_only=True,
        newest=True,
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
        newest=True,
        must_count=("rowWriters",),
        waits=True,
    ),
    Scenario(
        "killed",
        ["killBetweenStages", "rowsKilled", "killInReduce", "killInMap"],
        {"spark.task.maxFailures": "8", **KRYO},
        waits=True,
    ),
    Scenario(
        "killed-fallback",
        ["killBetweenStages", "killInReduce", "killInMap"],
        {"spark.task.maxFailures": "8"},
        faro=TRIED,
        fallback="auto",
        faro_only=True,
        newest=True,
        apart=True,
    ),
    # Barrier stages whose tasks all-reduce: one fails, one executor is killed, two do not agree.
    Scenario(
        "barrier",
        ["allReduce", "allReduceTaskFails", "allReduceKilled", "allReduceMismatch"],
        faro=ANY,
        faro_only=True,
        newest=True,
    ),
]
