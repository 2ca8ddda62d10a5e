"""Faro's readers and writer of rows, each alone and with every codec."""

from .model import (
    ANY,
    CANDIDATE,
    FULL,
    KRYO,
    MOST,
    ROWS,
    SPARK_READERS,
    SPARK_WRITERS,
    STREAMS,
    TRIED,
    Scenario,
    written_by_spark,
)

# 20,000 partitions take 25 s, and depend on no codec: rows-blocks has them.
ROWS_OF_A_CODEC = [case for case in ROWS if case != "manyPartitions"]
PLAIN = {"spark.faro.rowBlocks": "false"}

SCENARIOS = [
    # Faro's readers, of Spark SQL's rows and of RDDs: what they read, and what they leave behind.
    Scenario(
        "rows",
        [
            *ROWS_OF_A_CODEC,
            "corruptFiles",
            "stopsEarly",
            "rowsCancelled",
            "coalescedReaders",
            "longRowsReturned",
            # Spark does not end the feeding threads of these tasks, so their readers stay.
            "transformEndsEarly",
            "streamsSorted",
            "streamsMetrics",
            "streamsCorrupt",
            "streamsStopEarly",
        ],
        {"spark.driver.memory": "2g", **PLAIN, **KRYO},
        faro_only=True,
        # What Spark 3.5 has code of its own for; its smoke test has `rowTypes`.
        depths=(MOST, FULL),
        few=("rowSizes", "stopsEarly", "transformEndsEarly", "streamsSorted", "streamsStopEarly"),
        must_count=("rowReaders", "groupedReaders", "rowWriters"),
        must_not_count=("rowBlocks", *SPARK_READERS, *SPARK_WRITERS),
    ),
    # Spark 3 feeds Python on a thread of its own; 4.0 does so on the task's.
    Scenario(
        "rows-python",
        ["udfAnswers", "udfEndsEarly"],
        # 40 tasks, each with a Python.
        {"spark.e2e.rounds": "1"},
        faro_only=True,
        python=True,
        depths=(MOST,),
        version="3.5.9",
        cores=4,
        must_count=("rowReaders", "rowWriters"),
        must_not_count=(*SPARK_READERS, *SPARK_WRITERS),
    ),
    Scenario(
        "rows-zstd",
        [
            *(*ROWS_OF_A_CODEC, "mostPartitions", "sqlAggregate", "sqlJoin", "aqeSkewed"),
            *("groupByKey", "reduceByKey", "someTinyBlocks", *STREAMS),
        ],
        {"spark.io.compression.codec": "zstd", **KRYO},
        faro_only=True,
        finds="wrong frames of zstd, of rows and of RDDs' records",
        first=("rowTypes", "sqlJoin", "aqeSkewed", "groupByKey", *STREAMS),
        # Of 20,000 partitions not each has a buffer.
        must_count=("rowReaders", "rowWriters", "groupedReaders", "sparkWriters.partitions"),
        must_not_count=("sparkWriters.codec", "sparkWriters.noAccess"),
    ),
    Scenario(
        "rows-uncompressed",
        [*ROWS_OF_A_CODEC, *STREAMS],
        {"spark.shuffle.compress": "false", **KRYO},
        faro_only=True,
        tier=CANDIDATE,
        must_count=("rowReaders", "groupedReaders", "rowWriters"),
        must_not_count=SPARK_WRITERS,
    ),
    # Codecs that native code does not know: Spark's codec decompresses groups, of Spark SQL too,
    # and Spark's writer writes. With tasks of half a core, which Spark 4.3 has.
    Scenario(
        "rows-snappy",
        ["rowTypes", "rowMetrics", "aqeCoalesced", "rowBlocksNone", "sqlJoin", *STREAMS],
        {
            "spark.io.compression.codec": "snappy",
            "spark.faro.rowBlocks": "true",
            "spark.task.cpus": "0.5",
            **KRYO,
        },
        faro_only=True,
        version="4.3.0",
        must_count=("groupedReaders", *written_by_spark("codec")[0]),
        must_not_count=("rowReaders", *SPARK_READERS, *written_by_spark("codec")[1]),
        must_log_once=(
            r"no row blocks although spark\.faro\.rowBlocks is true: spark\.io\..*codec is snappy",
        ),
    ),
    Scenario(
        "rows-lzf",
        ["rowTypes", "streams"],
        {"spark.io.compression.codec": "lzf", **KRYO},
        faro_only=True,
        tier=CANDIDATE,
        must_count=("groupedReaders", *written_by_spark("codec")[0]),
        must_not_count=("rowReaders", *SPARK_READERS, *written_by_spark("codec")[1]),
    ),
    # Faro writes and packs, Spark's own reader reads, of other executors and of files of its host.
    Scenario(
        "rows-by-spark",
        [
            *ROWS_OF_A_CODEC,
            *("rowBlocksEverywhere", "rowBlocksDamaged", "corruptFiles", "sqlJoin"),
            "streamsMetrics",
        ],
        {"spark.faro.reader": "spark", "spark.driver.memory": "2g", **KRYO},
        faro_only=True,
        finds="files of Faro's writer that Spark's own reader cannot read",
        first=("rowTypes", "rowBlocksDamaged", "corruptFiles", "sqlJoin", "streamsMetrics"),
        must_count=("sparkReaders.setting", "rowWriters", "rowBlocks"),
        must_not_count=("rowReaders", "groupedReaders", *SPARK_WRITERS),
    ),
    Scenario(
        "rows-by-spark-zstd",
        ["rowTypes", "rowMetrics", "corruptFiles"],
        {"spark.faro.reader": "spark", "spark.io.compression.codec": "zstd"},
        faro_only=True,
        tier=CANDIDATE,
        must_count=("sparkReaders.setting", "rowWriters"),
        must_not_count=("rowReaders", "groupedReaders", *SPARK_WRITERS),
    ),
    # Spark writes, Faro reads.
    Scenario(
        "rows-from-spark",
        [*ROWS_OF_A_CODEC, "corruptFiles"],
        {"spark.faro.writer": "spark", "spark.driver.memory": "2g"},
        faro_only=True,
        must_count=("rowReaders", *written_by_spark("setting")[0]),
        must_not_count=(*SPARK_READERS, *written_by_spark("setting")[1]),
    ),
    Scenario(
        "rows-from-spark-zstd",
        ["rowTypes", "rowMetrics", "corruptFiles"],
        {"spark.faro.writer": "spark", "spark.io.compression.codec": "zstd"},
        faro_only=True,
        tier=CANDIDATE,
        must_count=("rowReaders", *written_by_spark("setting")[0]),
        must_not_count=(*SPARK_READERS, *written_by_spark("setting")[1]),
    ),
    # Faro's writer packs rows, by default.
    Scenario(
        "rows-blocks",
        [
            *ROWS,
            "rowBlocksEverywhere",
            "rowBlocksDamaged",
            "corruptFiles",
            "stopsEarly",
            "longRowsReturned",
            "sqlJoin",
            "sqlWindow",
        ],
        {"spark.driver.memory": "2g"},
        faro_only=True,
        # Other versions pack rows too, in their smoke test.
        finds="row blocks of any size and type that are wrong, damaged or never given back",
        first=(
            *("rowTypes", "rowSizes", "rowMetrics", "rowBlocksEverywhere", "rowBlocksDamaged"),
            *("corruptFiles", "stopsEarly", "longRowsReturned"),
        ),
        must_count=("rowReaders", "rowWriters", "rowBlocks"),
        # It has no RDDs, which are what counts `serializer`.
        must_not_count=(*SPARK_READERS, *SPARK_WRITERS, "sparkWriters.serializer"),
    ),
    Scenario(
        "rows-blocks-host-local",
        ["rowTypes", "rowBlocksEverywhere", "sqlJoin"],
        {
            "spark.faro.reader": "spark",
            "spark.shuffle.readHostLocalDisk": "true",
        },
        faro=ANY,
        fallback="auto",
        faro_only=True,
        tier=CANDIDATE,
        must_count=("sparkReaders.setting", "rowBlocks"),
    ),
    # One executor of three has no native code: Spark's writer and reader are its own, and it reads
    # what the other two have packed.
    Scenario(
        "rows-blocks-no-library",
        ["rowTypes", "rowBlocksEverywhere", "sqlJoin", "aqeSkewed"],
        {},
        faro=TRIED,
        fallback="auto",
        faro_only=True,
        finds="an executor without native code that the others cannot work with",
        first=("rowTypes", "rowBlocksEverywhere", "sqlJoin"),
        executors=3,
        no_library=True,
        must_count=("rowReaders", "rowBlocks"),
        must_log_of_one="Faro could not start",
        driver_must_log=("WARN FaroUi: Faro runs on 2 of 3 executors; 1 does not: ",),
    ),
    # Blocks of executors that are gone come from the service.
    Scenario(
        "rows-blocks-service",
        ["rowBlocksEverywhere", "aqeCoalesced", "killWithService"],
        {"spark.shuffle.service.enabled": "true"},
        with_service=True,
        faro=ANY,
        fallback="auto",
        faro_only=True,
        tier=CANDIDATE,
        must_count=("rowBlocks",),
        waits=True,
    ),
    # Row blocks with tails of zstd, among frames of zstd.
    Scenario(
        "rows-blocks-zstd",
        ["rowTypes", "rowBlocksEverywhere", "rowBlocksDamaged"],
        {
            "spark.io.compression.codec": "zstd",
            # A map task of these cases spills once or more.
            "spark.shuffle.spill.numElementsForceSpillThreshold": "2000",
        },
        faro_only=True,
        # rows-zstd has most of it.
        tier=CANDIDATE,
        must_count=("rowReaders", "rowWriters", "rowBlocks"),
        must_not_count=(*SPARK_READERS, *SPARK_WRITERS),
    ),
    # The same for Spark's own reader, which reads files of its host itself.
    Scenario(
        "rows-blocks-zstd-by-spark",
        ["rowTypes", "rowSizes", "rowBlocksEverywhere", "sqlJoin"],
        {
            "spark.io.compression.codec": "zstd",
            "spark.faro.reader": "spark",
            "spark.shuffle.readHostLocalDisk": "true",
        },
        faro=ANY,
        fallback="auto",
        faro_only=True,
        tier=CANDIDATE,
        must_count=("sparkReaders.setting", "rowWriters", "rowBlocks"),
        must_not_count=("rowReaders", *SPARK_WRITERS),
    ),
    # Executors of one host read each other's files.
    Scenario(
        "rows-host-local",
        [*ROWS[:2], "sqlJoin", "streams", "rowsKilled"],
        {"spark.shuffle.readHostLocalDisk": "true", **KRYO},
        faro=ANY,
        fallback="auto",
        faro_only=True,
        must_count=("rowReaders", "groupedReaders", "rowWriters"),
    ),
]
