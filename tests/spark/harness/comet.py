"""Apache DataFusion Comet's jars, from Maven Central into the cache."""

import spark_home

# By the Spark that each is for: the newest, and what there is for Spark 3.5.
RELEASES = {
    "4.1.4": ("spark4.1_2.13", "1.2.0"),
    "3.5.9": ("spark3.5_2.12", "0.12.0"),
}


def jar(spark):
    """The one for a version of Spark; fetched (70 to 99 MB) when it is missing."""
    flavour, version = RELEASES[spark]
    place = spark_home.cache_root() / "comet"
    found = place / f"comet-spark-{flavour}-{version}.jar"
    if not found.exists():
        spark_home.say(f"  Comet {version}: fetching (70 to 99 MB) ...")
        part = place / f".{version}.part"
        artifact = f"org.apache.datafusion:comet-spark-{flavour}:{version}"
        spark_home.run(
            [
                *("mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"),
                *(f"-Dartifact={artifact}", f"-DoutputDirectory={part}"),
            ]
        )
        (part / found.name).rename(found)
        part.rmdir()
    return found
