"""TPC-DS queries: Faro's answers against stock Spark's, of two applications that take turns.

Of each query all rows are compared, without its LIMIT and in any order, because rows that tie in
ORDER BY may come in any order and LIMIT may take any of them. See answers.py for doubles. The plans
that adaptive execution ends with are equal too: see plans.py. What it decides may depend on which
stage ends first; so where they differ, both sides are asked once more.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import answers
import data
import plans
import pytest
import queries
import spark_home
from application import Application, Failed
from harness import class_archive
from harness.conversation import Broken

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "target" / "test-logs" / "spark-tpcds"
VERSIONS = ["4.3.0", "3.5.9"]
QUERY_LIMIT = 600  # seconds
# The case after the queries of a version: whether their bytes went through Faro.
FARO = "faro"
OWN = {"Reader": "spark.faro.reader", "Writer": "spark.faro.writer"}

# What `make test` asks: self-joins of a WITH (q11, q47), sets and rollups (q67, q75), semi and anti
# joins (q23a, q95), joins of large tables (q72, q93), windows (q47, q51, q67), a full join (q97);
# all sort their answer but q97. Each has rows at scale factor 0.1. q4 and q14a are not among them:
# with the start of the applications they took 170 of 320 s.
SHORT = ["q11", "q23a", "q47", "q51", "q67", "q72", "q75", "q93", "q95", "q97"]
THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"
# The settings of a pass, which are the session's.
PASSES = {"defaults": {THRESHOLD: "10MB"}, "shuffled": {THRESHOLD: "-1"}}
# In all passes; tests/spark has fewer partitions. Small data has fewer, but still more than cores.
PARTITIONS = {True: "200", False: "12"}


def pytest_generate_tests(metafunc):
    options = metafunc.config.option
    versions = options.versions or (VERSIONS if options.all else VERSIONS[:1])
    passes = PASSES if options.all else ["shuffled"]
    names = queries.NAMES if options.all else SHORT
    cases = [
        (version, settings, name)
        for version in versions
        for settings, name in [*((p, n) for p in passes for n in names), ("all", FARO)]
    ]
    metafunc.parametrize(
        ("version", "settings", "name"), cases, ids=["-".join(case) for case in cases]
    )


class Pair:
    """Stock Spark and Faro, two applications that are asked the same."""

    def __init__(self, options, version, place, texts):
        self.version = version
        self.place = place
        self.texts = texts
        self.seconds = Counter()
        self.counters = Counter()
        self.asked = 0
        self._settings = ""
        logs = LOGS / version
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir(parents=True)
        tables = data.ensure(options.scale or ("1" if options.all else "0.1"))
        spark = spark_home.versions_named([version])[0]
        home = spark_home.ensure(spark)
        conf = {
            "spark.sql.shuffle.partitions": PARTITIONS[options.all],
            "spark.faro.fallback": "never",
        }
        self.own = dict(pair.split("=", 1) for pair in options.conf)
        # At scale factor 1 and with the parameters in their texts, some queries find nothing.
        self.may_be_empty = options.all
        self.applications = []
        try:
            for side in ("stock", "faro"):
                faro_jar = options.jar.resolve() if side == "faro" and not options.stock else None
                self.applications.append(
                    Application(
                        *(side, spark, home, place, tables, faro_jar, logs),
                        {**conf, **(self.own if side == "faro" else {})},
                        memory=2048 if options.all else 1024,
                        short_lived=not options.all,
                        archive=class_archive.found(spark, faro_jar),
                    )
                )
            for application in self.applications:
                application.await_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self):
        for application in self.applications:
            application.stop()

    def compare(self, settings, name):
        """What differs, if anything, and what is worth saying."""
        text = self.place / f"{name}.sql"
        text.write_text(queries.without_limit((self.texts / f"{name}.sql").read_text()))
        done = self._ask_both(settings, text)
        said = (
            f"stock {done['stock'].seconds:.1f} s, Faro {done['faro'].seconds:.1f} s, "
            f"{done['stock'].rows} rows, {done['faro'].counted('remoteBytes') / 1e6:.1f} MB remote"
        )
        sides = [self.place / f"{side}.tsv" for side in ("stock", "faro")]
        problem = answers.difference(*sides, may_be_empty=self.may_be_empty)
        if problem:
            return problem, said
        problem, note = self._compare_plans(settings, name, text)
        return problem, f"{said}; {note}" if note else said

    def _compare_plans(self, settings, name, text):
        """As plans.difference. If they differ, each side is asked once more, and one of its two
        plans must be one of the other side's; the plans stay with the logs."""
        first = self._keep_plans(f"{name}-{settings}", 1)
        problem, note = plans.difference(*first)
        if not problem:
            return None, note
        self._ask_both(settings, text)
        stock, faro = zip(first, self._keep_plans(f"{name}-{settings}", 2))
        if any(plans.difference(left, right)[0] is None for left in stock for right in faro):
            return None, f"at first {problem}"
        return f"{problem}; see {name}-*.plan", note

    def _keep_plans(self, name, attempt):
        """The plans of the attempt, stock's and Faro's, as files beside the logs."""
        kept = []
        for side in ("stock", "faro"):
            kept.append(LOGS / self.version / f"{name}-{side}-{attempt}.plan")
            made = self.place / f"{side}.tsv.plan"
            if made.exists():
                shutil.move(made, kept[-1])
        return kept

    def _ask_both(self, settings, text):
        """What each side did; its answer is in SIDE.tsv."""
        self.asked += 1
        done = {}
        # The sides take turns in going first: neither always has the colder machine.
        for application in self.applications[:: 1 if self.asked % 2 else -1]:
            if settings != self._settings:
                for key, value in PASSES[settings].items():
                    application.configure(key, value)
            output = self.place / f"{application.side}.tsv"
            done[application.side] = application.run(text, output, QUERY_LIMIT)
        self._settings = settings
        for side, one in done.items():
            self.seconds[side] += one.seconds
            self.counters.update(one.counters if side == "faro" else {})
        return done


class Pairs:
    """The applications of one version at a time, started when the first test asks for them."""

    def __init__(self, options):
        self.options = options
        self.texts = queries.ensure()
        self.place = Path(tempfile.mkdtemp(prefix="faro-tpcds-"))
        self.pair = None
        # By version, why its applications are of no more use.
        self.broken = {}

    def of(self, version):
        if version in self.broken:
            raise Broken(self.broken[version])
        if not self.pair or self.pair.version != version:
            self.close()
            place = self.place / version
            place.mkdir()
            try:
                self.pair = Pair(self.options, version, place, self.texts)
            except (RuntimeError, OSError, SystemExit) as error:
                # SystemExit: what the helpers of tests/setup end programs with.
                raise Broken(f"did not start: {error}") from error
        return self.pair

    def close(self):
        pair, self.pair = self.pair, None
        if pair:
            pair.stop()
            shutil.rmtree(pair.place, ignore_errors=True)


@pytest.fixture(scope="session")
def pairs(pytestconfig):
    made = Pairs(pytestconfig.option)
    yield made
    made.close()
    shutil.rmtree(made.place, ignore_errors=True)


def test_tpcds(pairs, version, settings, name, record_property, pytestconfig):
    """Faro has stock Spark's answer; at the end of a version, the bytes went through Faro."""
    try:
        pair = pairs.of(version)
        if name == FARO:
            problem, said = through_faro(pair, pytestconfig.option.stock)
        else:
            problem, said = pair.compare(settings, name)
    except Failed as error:
        problem, said = str(error), ""
    except Broken as error:
        pairs.broken[version] = f"the applications are gone since: {error}"
        problem, said = str(error), ""
    record_property("detail", said)
    if problem:
        logs = (LOGS / version).relative_to(ROOT)
        pytest.fail(f"{problem}; {said}\nlogs: {logs}", pytrace=False)


def through_faro(pair, stock):
    counted = {
        name: sum(v for k, v in pair.counters.items() if k == name or k.startswith(f"{name}."))
        for name in ("remoteBytes", "rowReaders", "rowWriters", "fallbacks", "crcErrors")
    }
    said = (
        f"{pair.asked} queries: stock {pair.seconds['stock']:.0f} s, Faro "
        f"{pair.seconds['faro']:.0f} s; {counted['remoteBytes'] / 1e6:.0f} MB remote, "
        + ", ".join(f"{name} {counted[name]:.0f}" for name in counted if name != "remoteBytes")
    )
    if stock:
        return "", said
    # Which half is left to Spark.
    off = [f"row{half}s" for half in ("Reader", "Writer") if pair.own.get(OWN[half]) == "spark"]
    on = [name for name in ("remoteBytes", "rowReaders", "rowWriters") if name not in off]
    wrong = [name for name in on if not counted[name]]
    wrong += [name for name in ("fallbacks", "crcErrors", *off) if counted[name]]
    return f"not as it should be: {', '.join(wrong)}" if wrong else "", said
