"""Apache DataFusion Comet's jar, from Maven Central into the cache."""

import spark_home

# The newest there is, for Spark 3.5 (scenarios.COMET_VERSION).
VERSION = "0.12.0"
ARTIFACT = f"org.apache.datafusion:comet-spark-spark3.5_2.12:{VERSION}"


def jar():
    """Fetched (70 MB) when it is missing."""
    place = spark_home.cache_root() / "comet"
    found = place / f"comet-spark-spark3.5_2.12-{VERSION}.jar"
    if not found.exists():
        spark_home.say(f"  Comet {VERSION}: fetching (70 MB) ...")
        part = place / f".{VERSION}.part"
        spark_home.run(
            [
                *("mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"),
                *(f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={part}"),
            ]
        )
        (part / found.name).rename(found)
        part.rmdir()
    return found
