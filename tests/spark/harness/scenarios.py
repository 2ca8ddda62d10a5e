"""The applications that are run: a Spark configuration, the cases to run in it, and what Faro must
have done. Cases are the Java classes under jobs/."""
from dataclasses import dataclass, field

RDD = ["groupByKey", "reduceByKey", "sortByKey", "cogroup", "chained"]
BLOCKS = ["tinyBlocks", "megabyteBlocks", "hugeBlock", "emptyPartitions"]
SQL = ["sqlAggregate", "sqlJoin", "sqlRepartition", "sqlWindow", "sqlOrder"]
AQE = ["aqeCoalesced", "aqeSkewed", "aqeLocal"]
FEW = ["groupByKey", "someTinyBlocks", "emptyPartitions", "sqlJoin"]

# What Faro must have done in a scenario.
USED = "used"        # remote blocks came through Faro, none of them by fall-back
TRIED = "tried"      # remote blocks came through Faro; fall-backs are allowed
DECLINED = "declined"  # Faro stood aside, and said once per process which key made it do so
ANY = "any"          # only the answers count


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
    bad_values: list = field(default_factory=list)


# key, value, and a word that must be in the message because it is allowed.
BAD_VALUES = [
    ("spark.faro.fabric", "carrier-pigeon", "tcp"),
    ("spark.faro.fallback", "sometimes", "never"),
    ("spark.faro.memory.limit", "plenty", "byte size"),
    ("spark.faro.memory.limit", "-1", "byte size"),
    ("spark.faro.request.timeout", "soon", "duration"),
    ("spark.faro.request.timeout", "0s", "duration"),
    ("spark.faro.port", "70000", "65535"),
    ("spark.faro.port", "http", "65535"),
    ("spark.faro.bindAddress", "no/host", "IP address"),
]

SCENARIOS = [
    Scenario("smoke", RDD + ["someTinyBlocks", "megabyteBlocks", "emptyPartitions"]
             + SQL + AQE + ["killBetweenStages"], smoke=True),
    Scenario("default", RDD + BLOCKS + SQL + AQE),
    Scenario("aqe-off", SQL, {"spark.sql.adaptive.enabled": "false"}),
    Scenario("no-batch-fetch", ["aqeCoalesced", "aqeSkewed"],
             {"spark.sql.adaptive.fetchShuffleBlocksInBatch": "false"}),
    Scenario("uncompressed", ["groupByKey", "megabyteBlocks", "hugeBlock", "sqlJoin",
                              "aqeCoalesced"],
             {"spark.shuffle.compress": "false", "spark.shuffle.spill.compress": "false"}),
    Scenario("kryo-zstd", RDD + ["someTinyBlocks", "sqlJoin", "aqeSkewed"],
             {"spark.serializer": "org.apache.spark.serializer.KryoSerializer",
              "spark.io.compression.codec": "zstd"}),
    Scenario("io-encryption", FEW + ["megabyteBlocks", "aqeCoalesced"],
             {"spark.io.encryption.enabled": "true"}),
    Scenario("checksum-crc32", FEW, {"spark.shuffle.checksum.enabled": "true",
                                     "spark.shuffle.checksum.algorithm": "CRC32",
                                     "spark.shuffle.push.enabled": "false"}),
    Scenario("small-limits", FEW + ["megabyteBlocks"],
             {"spark.reducer.maxSizeInFlight": "1m", "spark.reducer.maxReqsInFlight": "3",
              "spark.reducer.maxBlocksInFlightPerAddress": "7"}),
    Scenario("to-disk", ["groupByKey", "megabyteBlocks", "sqlJoin"],
             {"spark.network.maxRemoteBlockSizeFetchToMem": "100k"},
             faro=ANY, fallback="auto"),
    Scenario("shuffle-service", FEW + ["aqeCoalesced", "killWithService"],
             {"spark.shuffle.service.enabled": "true"}, with_service=True,
             faro=ANY, fallback="auto"),
    Scenario("dynamic-allocation", ["dynamicAllocation"],
             {"spark.dynamicAllocation.enabled": "true",
              "spark.dynamicAllocation.shuffleTracking.enabled": "true",
              "spark.dynamicAllocation.shuffleTracking.timeout": "1s",
              "spark.dynamicAllocation.minExecutors": "1",
              "spark.dynamicAllocation.initialExecutors": "1",
              "spark.dynamicAllocation.maxExecutors": "2",
              "spark.dynamicAllocation.executorIdleTimeout": "2s",
              "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
              "spark.scheduler.minRegisteredResourcesRatio": "0"}),
    Scenario("decommission", ["decommission"],
             {"spark.decommission.enabled": "true",
              "spark.storage.decommission.enabled": "true",
              "spark.storage.decommission.shuffleBlocks.enabled": "true",
              "spark.storage.decommission.rddBlocks.enabled": "true"}),
    Scenario("speculation", ["speculation"],
             {"spark.speculation": "true", "spark.speculation.interval": "50ms",
              "spark.speculation.quantile": "0.5", "spark.speculation.multiplier": "1.1"}),
    Scenario("killed", ["killBetweenStages", "killInReduce", "killInMap"],
             {"spark.task.maxFailures": "8"}),
    Scenario("killed-fallback", ["killBetweenStages", "killInReduce", "killInMap"],
             {"spark.task.maxFailures": "8"}, faro=TRIED, fallback="auto", faro_only=True),
    Scenario("authenticate", FEW,
             {"spark.authenticate": "true", "spark.authenticate.secret": "not-a-secret"},
             faro=DECLINED, fallback="auto", declined_because="spark.authenticate"),
    Scenario("network-crypto", FEW,
             {"spark.authenticate": "true", "spark.authenticate.secret": "not-a-secret",
              "spark.network.crypto.enabled": "true"},
             faro=DECLINED, fallback="auto",
             declined_because="spark.network.crypto.enabled|spark.authenticate"),
    Scenario("fabric-tcp", FEW, {"spark.faro.fabric": "tcp"}, faro_only=True),
    Scenario("fabric-shm", FEW, {"spark.faro.fabric": "shm"}, faro_only=True),
    Scenario("never-and-declined", ["badConfig"],
             {"spark.authenticate": "true", "spark.authenticate.secret": "not-a-secret"},
             faro=ANY, fallback="auto", faro_only=True,
             bad_values=[("spark.faro.fallback", "never", "spark.authenticate")]),
    Scenario("bad-values", ["badConfig"], faro=ANY, faro_only=True, bad_values=BAD_VALUES),
]


def chosen(depth, names, stock):
    """The scenarios of a depth ('full' or 'smoke'), or those that were named."""
    known = {s.name: s for s in SCENARIOS}
    unknown = [n for n in names if n not in known]
    if unknown:
        raise SystemExit(f"run: unknown scenario {', '.join(unknown)}; there are: "
                         f"{', '.join(known)}")
    picked = [known[n] for n in names] or [s for s in SCENARIOS if s.smoke == (depth == "smoke")]
    return [s for s in picked if not (stock and s.faro_only)]
