"""The applications that are run: a Spark configuration, the cases to run in it, and what Faro must
have done. Cases are the Java classes under jobs/."""

from dataclasses import dataclass, field

RDD = ["groupByKey", "reduceByKey", "sortByKey", "cogroup", "chained"]
BLOCKS = ["tinyBlocks", "megabyteBlocks", "hugeBlock", "emptyPartitions"]
SQL = ["sqlAggregate", "sqlJoin", "sqlRepartition", "sqlWindow", "sqlOrder"]
AQE = ["aqeCoalesced", "aqeSkewed", "aqeLocal"]
ROWS = ["rowTypes", "rowSizes", "rowMetrics", "manyPartitions"]
# Of RDDs; each needs Kryo. Spark's writer for few partitions would make a Kryo for each of them.
STREAMS = ["streams", "streamsSorted", "streamsMetrics"]
KRYO = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.shuffle.sort.bypassMergeThreshold": "1",
}
# Stock Spark takes its writer that sorts, which spills as Faro's does, for few partitions too.
SORTS = {"spark.shuffle.sort.bypassMergeThreshold": "1"}
SPARK_READERS = ("sparkReaders.codec", "sparkReaders.serializer", "sparkReaders.setting")
# Why Spark's own writer writes rows; RDDs, which some of these cases have too, count `serializer`.
SPARK_WRITERS = tuple(
    f"sparkWriters.{why}"
    for why in (
        *("setting", "aggregation", "encryption", "codec"),
        *("checksum", "partitions", "noAccess"),
    )
)
# Too many partitions is not among them.
OTHER_WRITERS = tuple(name for name in SPARK_WRITERS if name != "sparkWriters.partitions")


def written_by_spark(why):
    """Spark's own writer wrote everything, for that reason: counters that are not zero, and those
    that are."""
    reason = f"sparkWriters.{why}"
    return (reason,), ("rowWriters", *(name for name in SPARK_WRITERS if name != reason))


FEW = ["groupByKey", "someTinyBlocks", "emptyPartitions", "sqlJoin"]

# What Faro must have done in a scenario.
USED = "used"  # remote blocks came through Faro, none of them by fall-back
TRIED = "tried"  # remote blocks came through Faro; fall-backs are allowed
DECLINED = "declined"  # Faro left the shuffle to Spark; each process logged why, once
ANY = "any"  # only the answers count

# A library that was built with fault injection (native/endpoint/src/faults.rs), once per run.
FAULTY_LIBRARY = "@faulty-library@"
# A key store with the one key and the one certificate of the application, and its password.
KEY_STORE = "@key-store@"
KEY_STORE_PASSWORD = "of-the-key-store"
# A directory of the application's.
SCRATCH = "@scratch@"
SECRET = "known-to-the-members-only"
AUTHENTICATE = {"spark.authenticate": "true", "spark.authenticate.secret": SECRET}
# Of Spark's secret, of cards and of key stores.
SECRETS = rf"{SECRET}|{KEY_STORE_PASSWORD}|secret=\w{{16}}"
# Map outputs somewhere else, as far as Faro knows; its files are local all the same.
OTHER_DISK = {"spark.shuffle.sort.io.plugin.class": "io.faro.e2e.OtherShuffleDataIO"}


@dataclass
class Scenario:
    name: str
    cases: list
    conf: dict = field(default_factory=dict)
    faro: str = USED
    fallback: str = "never"
    declined_because: str = ""
    with_service: bool = False
    faro_only: bool = False
    smoke: bool = False
    everywhere: bool = False  # also where the depth is smoke
    newest: bool = False  # the same code in all versions: where the depth is full only
    must_count: tuple = ()  # counters that must not be zero; crcErrors must be, unless it is here
    must_not_log: str = ""  # of any executor
    no_log_has: str = ""  # neither the driver's nor an executor's
    must_not_count: tuple = ()  # counters that must be there and zero
    executors: int = 2
    cores: int = 1  # tasks at a time in an executor
    hosts: bool = False  # each executor has a host of its own, 127.0.0.2 and so on
    # With the JVM's defaults, as users run it; otherwise with what lets a short application start
    # and end soon (launch.SHORT_LIVED).
    jvm_defaults: bool = False
    bad_values: list = field(default_factory=list)

    def checks_faro(self):
        """Whether there is something to look at in what Faro's executors counted and logged."""
        looks = (self.must_count, self.must_not_count, self.must_not_log, self.no_log_has)
        return self.faro != ANY or any(looks)

    def names(self):
        """What the application reports, each once."""
        if self.bad_values:
            return [f"{key}={value}" for key, value, _ in self.bad_values]
        return list(dict.fromkeys(self.cases))


def faults(name, plan, counter, conf=None, newest=True):
    """A scenario with injected faults: the counter shows that they happened, and the answers are
    right all the same."""
    return Scenario(
        f"faults-{name}",
        ["groupByKey", "someTinyBlocks", "megabyteBlocks", "sqlJoin"],
        {
            "spark.executorEnv.FARO_FAULTS": plan,
            "spark.executor.extraJavaOptions": f"-Dfaro.library.path={FAULTY_LIBRARY}",
            **(conf or {}),
        },
        faro=TRIED,
        fallback="auto",
        faro_only=True,
        must_count=(counter,),
        newest=newest,
    )


def executor_shape(fabric, cases):
    """Executors as users run them: 8 tasks at a time, Faro's defaults except for the fabric."""
    return Scenario(
        f"executor-shape-{fabric}",
        cases,
        {
            "spark.faro.fabric": fabric,
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.shuffle.partitions": "16",
        },
        faro_only=True,
        newest=True,
        cores=8,
        jvm_defaults=True,
        must_not_count=("fallbacks", "failedBlocks", "requestsFailed", "busyRefusals"),
    )


# key, value, and a word that must be in the message because it is allowed.
BAD_VALUES = [
    ("spark.faro.fabric", "carrier-pigeon", "tcp"),
    ("spark.faro.fallback", "sometimes", "never"),
    ("spark.faro.security", "off", "required"),
    ("spark.faro.memory.limit", "plenty", "byte size"),
    ("spark.faro.memory.limit", "-1", "byte size"),
    ("spark.faro.request.timeout", "soon", "duration"),
    ("spark.faro.request.timeout", "0s", "duration"),
    ("spark.faro.port", "70000", "65535"),
    ("spark.faro.port", "http", "65535"),
    ("spark.faro.bindAddress", "no/host", "IP address"),
    ("spark.faro.regions", "mapped", "pinned"),
    ("spark.faro.staging", "always", "onCommit"),
    ("spark.faro.reader", "mine", "auto"),
    ("spark.faro.writer", "faro", "auto"),
    ("spark.faro.exchange", "alphabetical", "rotated"),
    ("spark.faro.exchange.slice", "1h", "at most 10s"),
]

SCENARIOS = [
    Scenario(
        "smoke",
        [
            *RDD,
            "someTinyBlocks",
            "megabyteBlocks",
            "emptyPartitions",
            *SQL,
            *AQE,
            "rowTypes",
            "killBetweenStages",
        ],
        smoke=True,
    ),
    Scenario("default", RDD + BLOCKS + SQL + AQE, jvm_defaults=True),
    # Faro's readers, of Spark SQL's rows and of RDDs: what they read, and what they leave behind.
    Scenario(
        "rows",
        [
            *ROWS,
            "corruptFiles",
            "stopsEarly",
            "rowsCancelled",
            "streamsSorted",
            "streamsMetrics",
            "streamsCorrupt",
            "streamsStopEarly",
        ],
        {"spark.driver.memory": "2g", **KRYO},
        faro_only=True,
        must_count=("rowReaders", "groupedReaders", "rowWriters"),
        must_not_count=(*SPARK_READERS, *SPARK_WRITERS),
    ),
    Scenario(
        "rows-zstd",
        [*ROWS, "mostPartitions", *SQL],
        {"spark.io.compression.codec": "zstd"},
        faro_only=True,
        newest=True,
        # Of 20,000 partitions not each has a buffer.
        must_count=("rowReaders", "rowWriters", "sparkWriters.partitions"),
        must_not_count=("sparkWriters.codec", "sparkWriters.serializer", "sparkWriters.noAccess"),
    ),
    Scenario(
        "rows-uncompressed",
        [*ROWS, *STREAMS],
        {"spark.shuffle.compress": "false", **KRYO},
        faro_only=True,
        newest=True,
        must_count=("rowReaders", "groupedReaders", "rowWriters"),
        must_not_count=SPARK_WRITERS,
    ),
    # Codecs that native code does not know: Spark's codec decompresses groups, of Spark SQL too,
    # and Spark's writer writes.
    Scenario(
        "rows-snappy",
        ["rowTypes", "rowMetrics", "aqeCoalesced", *STREAMS],
        {"spark.io.compression.codec": "snappy", **KRYO},
        faro_only=True,
        newest=True,
        must_count=("groupedReaders", *written_by_spark("codec")[0]),
        must_not_count=("rowReaders", *SPARK_READERS, *written_by_spark("codec")[1]),
    ),
    Scenario(
        "rows-lzf",
        ["rowTypes", "streams"],
        {"spark.io.compression.codec": "lzf", **KRYO},
        faro_only=True,
        newest=True,
        must_count=("groupedReaders", *written_by_spark("codec")[0]),
        must_not_count=("rowReaders", *SPARK_READERS, *written_by_spark("codec")[1]),
    ),
    # Faro writes, Spark reads.
    Scenario(
        "rows-by-spark",
        [*ROWS, "corruptFiles", "streamsMetrics"],
        {"spark.faro.reader": "spark", "spark.driver.memory": "2g", **KRYO},
        faro_only=True,
        newest=True,
        must_count=("sparkReaders.setting", "rowWriters"),
        must_not_count=("rowReaders", "groupedReaders", *SPARK_WRITERS),
    ),
    Scenario(
        "rows-by-spark-zstd",
        ["rowTypes", "rowMetrics", "corruptFiles"],
        {"spark.faro.reader": "spark", "spark.io.compression.codec": "zstd"},
        faro_only=True,
        newest=True,
        must_count=("sparkReaders.setting", "rowWriters"),
        must_not_count=("rowReaders", "groupedReaders", *SPARK_WRITERS),
    ),
    # Spark writes, Faro reads.
    Scenario(
        "rows-from-spark",
        [*ROWS, "corruptFiles"],
        {"spark.faro.writer": "spark", "spark.driver.memory": "2g"},
        faro_only=True,
        newest=True,
        must_count=("rowReaders", *written_by_spark("setting")[0]),
        must_not_count=(*SPARK_READERS, *written_by_spark("setting")[1]),
    ),
    Scenario(
        "rows-from-spark-zstd",
        ["rowTypes", "rowMetrics", "corruptFiles"],
        {"spark.faro.writer": "spark", "spark.io.compression.codec": "zstd"},
        faro_only=True,
        newest=True,
        must_count=("rowReaders", *written_by_spark("setting")[0]),
        must_not_count=(*SPARK_READERS, *written_by_spark("setting")[1]),
    ),
    # Executors of one host read each other's files.
    Scenario(
        "rows-host-local",
        [*ROWS[:2], "sqlJoin", "streams", "rowsKilled"],
        {"spark.shuffle.readHostLocalDisk": "true", **KRYO},
        faro=ANY,
        fallback="auto",
        faro_only=True,
        newest=True,
        must_count=("rowReaders", "groupedReaders", "rowWriters"),
    ),
    Scenario("aqe-off", SQL, {"spark.sql.adaptive.enabled": "false"}, newest=True),
    Scenario(
        "no-batch-fetch",
        ["aqeCoalesced", "aqeSkewed"],
        {"spark.sql.adaptive.fetchShuffleBlocksInBatch": "false"},
        newest=True,
    ),
    Scenario(
        "uncompressed",
        ["groupByKey", "megabyteBlocks", "hugeBlock", "sqlJoin", "aqeCoalesced"],
        {"spark.shuffle.compress": "false", "spark.shuffle.spill.compress": "false"},
        newest=True,
    ),
    Scenario(
        "kryo-zstd",
        [*RDD, *STREAMS, "someTinyBlocks", "sqlJoin", "aqeSkewed"],
        {**KRYO, "spark.io.compression.codec": "zstd"},
        newest=True,
        must_count=("groupedReaders",),
    ),
    Scenario(
        "io-encryption",
        [*FEW, "megabyteBlocks", "aqeCoalesced"],
        {"spark.io.encryption.enabled": "true"},
        must_count=("sparkWriters.encryption",),
        must_not_count=("rowWriters",),
    ),
    Scenario(
        "checksum-crc32",
        [*FEW, "writerFiles", "corruptDiagnosed"],
        {
            "spark.shuffle.checksum.enabled": "true",
            "spark.shuffle.checksum.algorithm": "CRC32",
            "spark.shuffle.push.enabled": "false",
        },
        newest=True,
        must_count=("rowWriters",),
        must_not_count=SPARK_WRITERS,
    ),
    # Faro's writer: its files, its figures, and what tasks that are ended leave behind.
    Scenario(
        "writer",
        ["writerFiles", "corruptDiagnosed", "writerMetrics", "rowChecksums", "writerKilled"],
        {
            **SORTS,
            "spark.sql.shuffle.orderIndependentChecksum.enabled": "true",
            "spark.task.maxFailures": "8",
            "spark.unsafe.exceptionOnMemoryLeak": "true",
        },
        newest=True,
        must_count=("rowWriters",),
        must_not_count=SPARK_WRITERS,
    ),
    # One task's output is ten times its memory; four tasks at a time share it with sorts and an
    # aggregation. Of 2,500 partitions not each has a buffer then.
    Scenario(
        "writer-little-memory",
        ["writerSpills", "writerBeside", "writerFiles"],
        {
            **SORTS,
            "spark.executor.memory": "512m",
            "spark.memory.fraction": "0.1",
            "spark.shuffle.checksum.enabled": "false",
            "spark.unsafe.exceptionOnMemoryLeak": "true",
        },
        newest=True,
        cores=4,
        must_count=("rowWriters", "sparkWriters.partitions"),
        must_not_count=OTHER_WRITERS,
    ),
    # As before, in memory outside the heap; and spills after so many rows, checksums included.
    Scenario(
        "writer-off-heap",
        ["writerFiles", "corruptDiagnosed", "writerSpills", "diskFull"],
        {
            **SORTS,
            "spark.memory.offHeap.enabled": "true",
            "spark.memory.offHeap.size": "16m",
            "spark.shuffle.spill.numElementsForceSpillThreshold": "20000",
            "spark.shuffle.checksum.algorithm": "CRC32C",
            "spark.task.maxFailures": "1000",
            "spark.unsafe.exceptionOnMemoryLeak": "true",
        },
        fallback="auto",
        faro=TRIED,
        newest=True,
        must_count=("rowWriters", "sparkWriters.partitions"),
        must_not_count=OTHER_WRITERS,
    ),
    # No room on the disk; one of two local directories becomes a file.
    Scenario(
        "writer-disk",
        ["diskFull", "directoryGone"],
        {
            **SORTS,
            "spark.local.dir": f"{SCRATCH}/a,{SCRATCH}/b",
            "spark.task.maxFailures": "1000",
            "spark.stage.maxConsecutiveAttempts": "100",
            "spark.unsafe.exceptionOnMemoryLeak": "true",
        },
        fallback="auto",
        faro=TRIED,
        newest=True,
        must_count=("rowWriters",),
        must_not_count=SPARK_WRITERS,
    ),
    Scenario(
        "small-limits",
        [*FEW, "streams", "megabyteBlocks"],
        {
            "spark.reducer.maxSizeInFlight": "1m",
            "spark.reducer.maxReqsInFlight": "3",
            "spark.reducer.maxBlocksInFlightPerAddress": "7",
            **KRYO,
        },
        newest=True,
    ),
    # Slabs go and come back in the middle of a job.
    Scenario(
        "idle-release",
        ["hugeBlock", "largeShuffle", *FEW],
        {"spark.faro.memory.idleRelease": "100ms"},
        newest=True,
        faro_only=True,
        must_count=("pool.slabsReleased",),
    ),
    Scenario(
        "to-disk",
        ["groupByKey", "megabyteBlocks", "sqlJoin", "rowSizes"],
        {"spark.network.maxRemoteBlockSizeFetchToMem": "100k", **KRYO},
        newest=True,
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
        newest=True,
    ),
    Scenario(
        "shuffle-service",
        [*FEW, "aqeCoalesced", "killWithService"],
        {"spark.shuffle.service.enabled": "true"},
        with_service=True,
        faro=ANY,
        fallback="auto",
        must_count=("rowWriters",),
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
    ),
    Scenario(
        "killed",
        ["killBetweenStages", "rowsKilled", "killInReduce", "killInMap"],
        {"spark.task.maxFailures": "8", **KRYO},
    ),
    Scenario(
        "killed-fallback",
        ["killBetweenStages", "killInReduce", "killInMap"],
        {"spark.task.maxFailures": "8"},
        faro=TRIED,
        fallback="auto",
        faro_only=True,
        newest=True,
    ),
    faults("corrupt", "flip=5", "crcErrors"),
    faults("disconnect", "drop=4", "retries"),
    faults("deadline", "swallow=6", "timeouts", {"spark.faro.request.timeout": "500ms"}),
    faults("dead-endpoint", "die=5", "fallbackReason"),
    # Far more is in flight than the arena holds. Nothing may be left to Spark.
    Scenario(
        "small-arena",
        ["megabyteBlocks", "sqlWideJoin", "sqlJoin"],
        {"spark.faro.memory.limit": "64m", "spark.shuffle.compress": "false"},
        faro_only=True,
        cores=8,
    ),
    executor_shape("tcp", ["manyOutputs", "sqlLargeJoin"]),
    executor_shape("shm", ["manyOutputs"]),
    # A block that the arena cannot hold is left to Spark; all others are not.
    Scenario(
        "tiny-arena",
        ["hugeBlock", "sqlJoin"],
        {"spark.faro.memory.limit": "32m", "spark.shuffle.compress": "false"},
        faro=TRIED,
        fallback="auto",
        faro_only=True,
        newest=True,
    ),
    # Sealed, with Spark's secret. The executor that replaces a killed one has it too.
    Scenario(
        "authenticate",
        ["sqlJoin", "killInMap"],
        {**AUTHENTICATE, "spark.faro.fabric": "tcp", "spark.task.maxFailures": "8"},
        faro_only=True,
        everywhere=True,
        must_count=("sealedChannel", "remoteBlocks.tcp"),
        no_log_has=SECRETS,
    ),
    # The same within a host, and with encryption of files.
    Scenario(
        "network-crypto",
        [*FEW, "megabyteBlocks"],
        {
            **AUTHENTICATE,
            "spark.network.crypto.enabled": "true",
            "spark.io.encryption.enabled": "true",
        },
        must_count=("sealedChannel", "remoteBlocks.shm"),
        no_log_has=SECRETS,
    ),
    # Sealed with the secrets of the cards, which travel in Spark's TLS.
    Scenario(
        "ssl-rpc",
        FEW,
        {
            "spark.ssl.rpc.enabled": "true",
            "spark.ssl.rpc.protocol": "TLSv1.3",
            "spark.ssl.rpc.keyStore": KEY_STORE,
            "spark.ssl.rpc.keyStorePassword": KEY_STORE_PASSWORD,
            "spark.ssl.rpc.keyPassword": KEY_STORE_PASSWORD,
            "spark.ssl.rpc.trustStore": KEY_STORE,
            "spark.ssl.rpc.trustStorePassword": KEY_STORE_PASSWORD,
            "spark.faro.fabric": "tcp",
        },
        newest=True,
        must_count=("sealedChannel", "remoteBlocks.tcp"),
        no_log_has=SECRETS,
    ),
    Scenario(
        "security-required",
        ["groupByKey", "sqlJoin"],
        {"spark.faro.security": "required", "spark.faro.fabric": "tcp"},
        faro_only=True,
        newest=True,
        must_count=("sealedChannel", "remoteBlocks.tcp"),
        no_log_has=SECRETS,
    ),
    Scenario(
        "declined",
        ["groupByKey", "sqlJoin"],
        OTHER_DISK,
        faro=DECLINED,
        fallback="auto",
        declined_because="spark.shuffle.sort.io.plugin.class",
        newest=True,
    ),
    # Barrier stages whose tasks all-reduce: one fails, one executor is killed, two do not agree.
    Scenario(
        "barrier",
        ["allReduce", "allReduceTaskFails", "allReduceKilled", "allReduceMismatch"],
        faro=ANY,
        faro_only=True,
        newest=True,
    ),
    Scenario("fabric-tcp", FEW, {"spark.faro.fabric": "tcp"}, faro_only=True, newest=True),
    # Four executors: with fewer, all of them are in one group and there is no schedule.
    Scenario(
        "exchange-grouped",
        [*FEW, "megabyteBlocks"],
        {"spark.faro.exchange": "grouped", "spark.faro.exchange.slice": "5ms"},
        faro_only=True,
        newest=True,
        executors=4,
        must_count=("exchange.rounds",),
    ),
    Scenario("fabric-shm", FEW, {"spark.faro.fabric": "shm"}, faro_only=True, newest=True),
    Scenario(
        "never-and-declined",
        ["badConfig"],
        OTHER_DISK,
        faro=ANY,
        fallback="auto",
        faro_only=True,
        bad_values=[("spark.faro.fallback", "never", "spark.shuffle.sort.io.plugin.class")],
    ),
    Scenario("bad-values", ["badConfig"], faro=ANY, faro_only=True, bad_values=BAD_VALUES),
]


def chosen(depth, names, stock):
    """The scenarios of a depth ('full', 'most' or 'smoke'), or the named ones."""
    known = {s.name: s for s in SCENARIOS}
    unknown = [n for n in names if n not in known]
    if unknown:
        raise SystemExit(
            f"run: unknown scenario {', '.join(unknown)}; there are: {', '.join(known)}"
        )
    picked = [known[n] for n in names] or [
        s
        for s in SCENARIOS
        if s.everywhere or (s.smoke == (depth == "smoke") and (depth == "full" or not s.newest))
    ]
    return [s for s in picked if not (stock and s.faro_only)]
