"""What a scenario is, and the values that several of them share."""

from dataclasses import dataclass, field, replace

RDD = ["groupByKey", "reduceByKey", "sortByKey", "cogroup", "chained"]
BLOCKS = ["someTinyBlocks", "megabyteBlocks", "hugeBlock", "emptyPartitions"]
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


# Cases of RDDs, which have no rows of Spark SQL.
OF_RECORDS = {
    *(*RDD, *BLOCKS, "tinyBlocks", "blockBeyondMemory", "largeShuffle"),
    *("manyOutputs", "speculation", "dynamicAllocation"),
    *("killBetweenStages", "killWithService", "killInReduce", "killInMap"),
}


def has_rows(case):
    return case not in OF_RECORDS and not reads_streams(case)


def reads_streams(case):
    return case.startswith("streams") or case == "switchJobs"


# Which cases give a counter, where not all of a scenario's do. A run of some cases (`--cases` or
# `-k`) asks for it only if one of these runs.
GIVEN_BY = {
    "rowReaders": has_rows,
    "rowWriters": has_rows,
    "groupedReaders": reads_streams,
    # A codec that native code does not know leaves groups of Spark SQL to these readers too.
    "sparkReaders.setting": lambda case: has_rows(case) or reads_streams(case),
    "sparkWriters.setting": has_rows,
    "sparkWriters.encryption": has_rows,
    "sparkWriters.codec": has_rows,
    "sparkWriters.partitions": {"mostPartitions", "writerFiles"}.__contains__,
}

FEW = ["groupByKey", "someTinyBlocks", "emptyPartitions", "sqlJoin"]
FEWEST = ("groupByKey", "sqlJoin")

# Tiers, as `tests/spark/run --tier` takes them: what `make test` runs, what `make test-all` runs
# beside it, what a candidate for a release has to pass too. A case on a version of Spark is in one.
TEST, ALL, CANDIDATE = "test", "all", "candidate"
TIERS = (TEST, ALL, CANDIDATE)
# How much runs on a version of Spark (tests/setup/spark-versions), least first.
BRIEF, MOST, FULL = DEPTHS = ("brief", "most", "full")

# What Faro must have done in a scenario.
USED = "used"  # remote blocks came through Faro, none of them by fall-back
TRIED = "tried"  # remote blocks came through Faro; fall-backs are allowed
DECLINED = "declined"  # Faro left the shuffle to Spark; each process logged why, once
ANY = "any"  # only the answers count

# What goes wrong in executors; it needs the jar of the tests (native/endpoint/src/faults.rs).
FAULTS = "spark.executorEnv.FARO_FAULTS"
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
PLUGIN = "io.faro.spark.FaroPlugin"
# The Sparks that Comet is tried on (harness/comet.py): its newest release, and that for Spark 3.5.
COMET_VERSION = "4.1.4"
COMET_OLD_VERSION = "3.5.9"
COMET_MANAGER = "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager"
COMET = {
    "spark.plugins": "org.apache.spark.CometPlugin",
    "spark.memory.offHeap.enabled": "true",
    "spark.memory.offHeap.size": "1g",
}


@dataclass
class Scenario:
    name: str
    cases: list
    conf: dict = field(default_factory=dict)
    faro: str = USED
    fallback: str = "never"
    declined_because: str = ""
    with_service: bool = False  # Spark's external shuffle service
    # `faro serve`, with its directories in @scratch@.
    node_service: bool = False
    # As many `faro serve`, in @scratch@/host-0 and so on, each for the executors of one worker.
    service_hosts: int = 0
    # Applications at the same time, with the same directories: the settings of each over those
    # here, None: stock Spark.
    beside: tuple = ()
    service_must_log: tuple = ()  # patterns in the log of `faro serve`
    faro_only: bool = False
    depths: tuple = (FULL,)  # of the versions of Spark on which it runs
    few: tuple = ()  # its cases where the depth is not full, if not all
    # It is in the first tier, on the version of the greatest depth: what only it finds there.
    finds: str = ""
    first: tuple = ()  # its cases there, if not all
    tier: str = ALL  # of the others
    # What never came once may have been a defect: it is not tried again.
    late_is_red: bool = False
    waits: bool = False  # most of the time, for deadlines or for executors that come and go
    version: str = ""  # the only one that it can run on
    first_spark: int = 3  # the first major version of Spark that has the settings
    # Faro is a plug-in behind this shuffle manager, Spark's own or another's; otherwise it is one.
    behind: str = ""
    comet: bool = False  # with Comet's jar
    python: bool = False  # the cases are those of tests/spark/python/jobs.py
    must_count: tuple = ()  # counters that must not be zero; crcErrors must be, unless it is here
    must_not_log: str = ""  # of any executor
    must_log_of_one: str = ""  # a pattern in the log of one executor, and in no other's
    driver_must_log: tuple = ()  # patterns in the driver's log
    must_log_once: tuple = ()  # patterns: one line of each executor that ran tasks of a shuffle
    no_log_has: str = ""  # neither the driver's nor an executor's
    must_not_count: tuple = ()  # counters that must be there and zero
    executors: int = 2
    cores: int = 1  # tasks at a time in an executor
    open_files: int = 0  # that each executor may have, if not as many as the tests themselves
    volumes: bool = False  # an executor has the local directory of its predecessor
    no_library: bool = False  # executor 0 cannot load the native library
    # Where a copy of the jar with another version is: `executor`, first on the class path of
    # executor 0, or `jars`, beside the other one in --jars.
    other_version: str = ""
    hosts: bool = False  # each executor has a host of its own, 127.0.0.2 and so on
    # With the JVM's defaults, as users run it; otherwise with what lets a short application start
    # and end soon (launch.SHORT_LIVED).
    jvm_defaults: bool = False
    bad_values: list = field(default_factory=list)

    def only(self, cases):
        """The scenario with only these of its cases, and with the counters that they give."""
        kept = [case for case in self.cases if case in cases]
        if kept == self.cases:
            return self

        def given(counter):
            gives = GIVEN_BY.get(counter)
            return gives is None or any(map(gives, kept))

        return replace(self, cases=kept, must_count=tuple(filter(given, self.must_count)))

    def checks_faro(self):
        """Whether there is something to look at in what Faro's executors counted and logged."""
        looks = (
            *(self.must_count, self.must_not_count, self.must_log_once),
            *(self.service_must_log, self.driver_must_log),
            *(self.must_not_log, self.no_log_has, self.must_log_of_one),
        )
        return self.faro != ANY or any(looks)

    def names(self):
        """What the application reports, each once."""
        if self.bad_values:
            return [f"{key}={value}" for key, value, _ in self.bad_values]
        return list(dict.fromkeys(self.cases))
