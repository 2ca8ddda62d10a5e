"""Every kind of job, with the settings that change how Spark shuffles."""

from .model import (
    AQE,
    BLOCKS,
    BRIEF,
    CANDIDATE,
    FEW,
    FEWEST,
    FULL,
    KRYO,
    MOST,
    RDD,
    SPARK_WRITERS,
    SQL,
    Scenario,
)

SCENARIOS = [
    # Each kind of job once; what `default` has beside these takes the same way through all that
    # differs between versions.
    Scenario(
        "smoke",
        [
            *("groupByKey", "sortByKey", "someTinyBlocks", "emptyPartitions"),
            *("sqlAggregate", "sqlJoin", "sqlWindow", "sortsOfJoins"),
            *AQE,
            *("rowTypes", "killBetweenStages"),
        ],
        depths=(BRIEF, MOST),
        finds="what Spark 3, Scala 2.12 and a manager that is made before --jars are loaded break",
    ),
    Scenario(
        "default",
        RDD + BLOCKS + SQL + AQE,
        finds="what breaks a kind of job of RDDs or of Spark SQL with Spark's own defaults",
    ),
    Scenario(
        "sort",
        [*("sorts", "sortsOfJoins", "sortsEndEarly"), *SQL, *AQE],
        depths=(MOST, FULL),
        few=("sorts", "sortsOfJoins", "sortsEndEarly", "sqlJoin", "sqlWindow", "aqeSkewed"),
        must_count=("sorts",),
        must_not_count=("sparkSorts.memory", "sparkSorts.noLibrary"),
    ),
    # Tasks have no memory for all rows: sorted runs move to disk, or all rows of another operator.
    Scenario(
        "sort-without-memory",
        ["sortsOfJoins", "sortsEndEarly", "sqlLargeJoin", "sqlOrder"],
        {
            "spark.memory.fraction": "0.05",
            "spark.sql.shuffle.partitions": "4",
        },
        faro_only=True,
        must_count=("sortRuns",),
        must_not_count=("sparkSorts.noLibrary",),
    ),
    # A task has about 2 MB: dozens of runs of 1 MiB.
    Scenario(
        "sort-hardly-memory",
        ["sqlLargeJoin"],
        {
            "spark.memory.fraction": "0.003",
            "spark.sql.shuffle.partitions": "4",
        },
        faro_only=True,
        must_count=("sortRuns",),
        must_not_count=("sparkSorts.noLibrary",),
    ),
    # 40,000 blocks; `manyOutputs` has as many, of 2,000 outputs, with eight tasks at a time.
    Scenario("tiny-blocks", ["tinyBlocks"], tier=CANDIDATE),
    Scenario(
        "no-batch-fetch",
        ["aqeCoalesced", "aqeSkewed"],
        {"spark.sql.adaptive.fetchShuffleBlocksInBatch": "false"},
        tier=CANDIDATE,
    ),
    Scenario(
        "uncompressed",
        ["groupByKey", "megabyteBlocks", "hugeBlock", "sqlJoin", "aqeCoalesced"],
        {"spark.shuffle.compress": "false", "spark.shuffle.spill.compress": "false"},
        tier=CANDIDATE,
    ),
    Scenario(
        "io-encryption",
        [*FEWEST, "megabyteBlocks", "aqeCoalesced"],
        {"spark.io.encryption.enabled": "true"},
        # The scenario network-crypto has it on other versions.
        must_count=("sparkWriters.encryption",),
        must_log_once=(
            r"Faro leaves shuffle \d+ to Spark's own writer: spark.io.encryption.enabled is true",
            r"Faro leaves shuffle \d+ to Spark's own reader: spark.io.encryption.enabled is true",
        ),
        must_not_count=("rowWriters", "rowBlocks"),
    ),
    # Without adaptive execution, so that 200 partitions are read with these limits; and checksums.
    Scenario(
        "small-limits",
        [*FEW, "streams", "megabyteBlocks", "sqlOrder", "writerFiles", "corruptDiagnosed"],
        {
            "spark.sql.adaptive.enabled": "false",
            "spark.reducer.maxSizeInFlight": "1m",
            "spark.reducer.maxReqsInFlight": "3",
            "spark.reducer.maxBlocksInFlightPerAddress": "7",
            "spark.shuffle.checksum.enabled": "true",
            # Spark takes any case.
            "spark.shuffle.checksum.algorithm": "crc32",
            "spark.shuffle.sync": "TRUE",
            "spark.shuffle.push.enabled": "false",
            **KRYO,
        },
        must_count=("rowWriters",),
        must_not_count=SPARK_WRITERS,
    ),
    # Slabs go and come back in the middle of a job.
    Scenario(
        "idle-release",
        ["hugeBlock", "largeShuffle", *FEWEST],
        {"spark.faro.memory.idleRelease": "100ms"},
        faro_only=True,
        must_count=("pool.slabsReleased",),
        waits=True,
    ),
    Scenario(
        "to-disk-beyond-memory",
        ["blockBeyondMemory"],
        {
            "spark.network.maxRemoteBlockSizeFetchToMem": "100k",
            "spark.faro.memory.limit": "32m",
            "spark.shuffle.compress": "false",
        },
        faro_only=True,
    ),
]
