"""Faro's own settings: fabrics, the exchange, wrong values; settings of Spark's that it obeys."""

from .model import (
    ANY,
    CANDIDATE,
    DECLINED,
    FEW,
    FEWEST,
    FULL,
    KRYO,
    MOST,
    OTHER_DISK,
    PLUGIN,
    SECRETS,
    Scenario,
)

# key, value, and a word that must be in the message because it is allowed.
BAD_VALUES = [
    ("spark.faro.enabled", "perhaps", "true, false"),
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
    ("spark.faro.regions", "mapped", "unpinned, optimistic"),
    # A mode for comparison, which only a jar for research has.
    ("spark.faro.regions", "pinned", "--research"),
    ("spark.faro.reader", "mine", "auto"),
    ("spark.faro.writer", "faro", "auto"),
    ("spark.faro.exchange", "alphabetical", "rotated"),
    ("spark.faro.exchange.slice", "1h", "at most 10s"),
]

GROUPED = {"spark.faro.exchange": "grouped", "spark.faro.exchange.slice": "5ms"}


def on_no_executor(name, conf, reason):
    """Faro starts on no executor, so stock Spark runs the job, and the driver's log says why."""
    return Scenario(
        name,
        ["groupByKey"],
        conf,
        faro=ANY,
        fallback="auto",
        faro_only=True,
        depths=(MOST, FULL),
        must_log_once=("Faro could not start, Spark's own fetch delivers all blocks",),
        driver_must_log=(f"Faro runs on 0 of 2 executors; 2 do not: .*{reason}",),
    )


SCENARIOS = [
    Scenario("fabric-tcp", FEW, {"spark.faro.fabric": "tcp"}, faro_only=True, tier=CANDIDATE),
    # Four executors: with fewer, all of them are in one group and there is no schedule. Sealed,
    # because it is required.
    Scenario(
        "exchange-grouped",
        [*FEW, "megabyteBlocks"],
        {**GROUPED, "spark.faro.security": "required", "spark.faro.fabric": "tcp"},
        faro_only=True,
        executors=4,
        must_count=("exchange.rounds", "sealedChannel", "remoteBlocks.tcp"),
        no_log_has=SECRETS,
    ),
    Scenario(
        "exchange-in-the-clear",
        [*FEW, "megabyteBlocks"],
        GROUPED,
        faro_only=True,
        tier=CANDIDATE,
        executors=4,
        must_count=("exchange.rounds",),
    ),
    Scenario("fabric-shm", FEW, {"spark.faro.fabric": "shm"}, faro_only=True, tier=CANDIDATE),
    Scenario(
        "never-and-declined",
        ["badConfig"],
        OTHER_DISK,
        faro=ANY,
        fallback="auto",
        faro_only=True,
        bad_values=[("spark.faro.fallback", "never", "spark.shuffle.sort.io.plugin.class")],
    ),
    # Executors recover what their predecessors left on a volume (spark-kubernetes).
    Scenario(
        "volumes",
        ["volumesReused"],
        {
            "spark.shuffle.sort.io.plugin.class": "org.apache.spark.shuffle."
            "KubernetesLocalDiskShuffleDataIO",
            "spark.kubernetes.driver.reusePersistentVolumeClaim": "true",
        },
        volumes=True,
        must_count=("rowReaders", "rowWriters"),
        waits=True,
    ),
    # One host name, and files that only their own executor sees: read by Faro's readers, by
    # Spark's, and into files. With Faro's manager and its plug-in too, which then does nothing.
    Scenario(
        "hidden-directories",
        [*FEW, "hostLocalOff", "megabyteBlocks", "rowSizes"],
        {
            **KRYO,
            "spark.shuffle.readHostLocalDisk": "true",
            "spark.plugins": f"io.faro.e2e.HiddenDirectories,{PLUGIN}",
            "spark.network.maxRemoteBlockSizeFetchToMem": "100k",
            "spark.task.maxFailures": "1",
            "spark.stage.maxConsecutiveAttempts": "1",
        },
        must_count=("rowReaders", "rowWriters"),
        must_log_once=("over the network, although it has this host's name",),
    ),
    Scenario(
        "hidden-directories-records",
        ["streams", "streamsSorted"],
        {
            "spark.shuffle.readHostLocalDisk": "true",
            "spark.plugins": "io.faro.e2e.HiddenDirectories",
            "spark.stage.maxConsecutiveAttempts": "1",
            **KRYO,
        },
        tier=CANDIDATE,
        must_count=("groupedReaders",),
    ),
    # Java does not let Spark's client be replaced: Faro's readers fetch all the same. A security
    # manager refuses it, which Java has up to 17; later ones refuse it by JEP 500.
    Scenario(
        "fixed-fields",
        [*FEWEST],
        {"spark.plugins": "io.faro.e2e.FixedFields"},
        fallback="auto",
        faro_only=True,
        must_count=("rowReaders",),
        must_log_once=("this Java does not let it replace the final field",),
    ),
    # One application in which sessions, queries and jobs do without Faro.
    Scenario(
        "switch",
        ["switchSession", "switchRddOfQuery", "switchJobs", "switchAqe", "switchBadValue"],
        KRYO,
        faro_only=True,
        must_count=("rowReaders", "rowWriters", "groupedReaders"),
    ),
    # And one that was submitted without it: fallback=never does not mind.
    Scenario(
        "switched-off",
        [*FEWEST, "switchedOff"],
        {"spark.faro.enabled": "false"},
        faro=DECLINED,
        faro_only=True,
        declined_because="spark.faro.enabled=false",
    ),
    # Another plug-in puts its block client in front of Faro's.
    Scenario(
        "late-other-client",
        FEW,
        {"spark.plugins": "io.faro.e2e.LateClient"},
        faro=ANY,
        fallback="auto",
        faro_only=True,
        tier=CANDIDATE,
        must_log_once=("another plug-in has replaced Faro's client",),
    ),
    # Images of a rolling upgrade: executor 0 has another version of the jar than the driver.
    Scenario(
        "mixed-versions",
        [*FEWEST],
        # An executor of an older version may have no class for the sort.
        must_not_count=("sorts",),
        faro=ANY,
        fallback="auto",
        faro_only=True,
        other_version="executor",
        must_log_of_one="Faro is off in this executor.*Faro 9.9.9, the driver's has",
        driver_must_log=(
            r"Faro runs on 1 of 2 executors; 1 does not: .*Faro 9\.9\.9",
            r"Faro leaves sorts to Spark: Faro had not started in all executors",
        ),
    ),
    Scenario(
        "two-jars",
        [*FEWEST],
        faro=ANY,
        fallback="auto",
        faro_only=True,
        tier=CANDIDATE,
        other_version="jars",
        must_log_once=("Faro's jar is on the class path in more than one version",),
    ),
    on_no_executor(
        "wrong-address",
        {"spark.faro.bindAddress": "192.0.2.1"},
        r"spark\.faro\.bindAddress=192\.0\.2\.1 is not an address of this host",
    ),
    on_no_executor(
        "no-tmpdir",
        {"spark.executor.extraJavaOptions": "-Dfaro.tmpdir=/not/there"},
        "-Dfaro.tmpdir=/not/there does not take it",
    ),
    Scenario("bad-values", ["badConfig"], faro=ANY, faro_only=True, bad_values=BAD_VALUES),
]
