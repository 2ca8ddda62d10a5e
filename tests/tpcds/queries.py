"""The texts of the TPC-DS queries, from the test jar that is published with Spark."""

import re
import tempfile
import zipfile
from pathlib import Path

import spark_home

# Of this version, whatever runs them: 4.3.0 is published without its tests.
SOURCE = "3.5.9"
IN_PARTS = (14, 23, 24, 39)
NAMES = [
    f"q{number}{part}"
    for number in range(1, 100)
    for part in ("ab" if number in IN_PARTS else ("",))
]
# Heavy ones, of many kinds: what `make bench` measures.
HEAVY = ["q4", "q11", "q14a", "q23a", "q64", "q67", "q72", "q78", "q93", "q95"]


def ensure():
    """The folder that has NAME.sql for each of NAMES."""
    place = spark_home.cache_root() / "tpcds" / f"queries-{SOURCE}"
    if place.is_dir():
        return place
    version = spark_home.versions_named([SOURCE])[0]
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".queries.", dir=place.parent) as scratch:
        artifact = f"org.apache.spark:spark-sql_{version.scala}:{version.spark}:jar:tests"
        spark_home.run(
            [
                *("mvn", "-q", "-B", "--strict-checksums", "dependency:copy"),
                *(f"-Dartifact={artifact}", f"-DoutputDirectory={scratch}"),
            ]
        )
        filled = Path(scratch, "queries")
        filled.mkdir()
        with zipfile.ZipFile(next(Path(scratch).glob("*.jar"))) as jar:
            for name in NAMES:
                text = jar.read(f"tpcds/{name}.sql").decode()
                # The column's name since TPC-DS 2, which the generator uses.
                text = re.sub(r"\bc_last_review_date\b", "c_last_review_date_sk", text)
                (filled / f"{name}.sql").write_text(text)
        try:
            filled.rename(place)
        except OSError:
            # Another process was first.
            if not place.is_dir():
                raise
    return place


def without_limit(text):
    """The query without the LIMIT at its end (none of them has one elsewhere). Where rows tie in
    ORDER BY, two right answers to a query with LIMIT can have different rows."""
    return re.sub(r"\blimit\s+\d+\s*;?\s*$", "", text, flags=re.IGNORECASE)
