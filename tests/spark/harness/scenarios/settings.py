"""Faro's own settings: fabrics, the exchange, wrong values."""

from .model import ANY, FEW, OTHER_DISK, Scenario

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
    Scenario(
        "fabric-shm", FEW, {"spark.faro.fabric": "shm"}, faro_only=True, newest=True, apart=True
    ),
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
