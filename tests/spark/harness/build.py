"""Compiles Java programs that run on every Spark version."""

import shutil
import subprocess
import zipfile
from pathlib import Path

import spark_home

ROOT = Path(__file__).resolve().parents[3]
# Its classes have Java 8 signatures that all later versions still answer to.
COMPILE_AGAINST = "3.5.9"


def java_jar(name, sources, class_path=(), against=COMPILE_AGAINST):
    """A jar of these sources under target/tests-spark; built again when one of them, or a jar that
    they are compiled against besides Spark's (of the version `against`), is newer."""
    jar = ROOT / "target" / "tests-spark" / f"{name}.jar"
    inputs = [*sources, *class_path]
    if jar.exists() and all(i.stat().st_mtime < jar.stat().st_mtime for i in inputs):
        return jar
    classes = jar.parent / f"{name}-classes"
    shutil.rmtree(classes, ignore_errors=True)
    classes.mkdir(parents=True)
    home = spark_home.ensure(spark_home.versions_named([against])[0])
    class_path = ":".join([f"{home}/jars/*", *map(str, class_path)])
    spark_home.run(
        [
            "javac",
            "--release",
            "8",
            "-nowarn",
            "-Xlint:-options",
            "-cp",
            class_path,
            "-d",
            classes,
            *sources,
        ]
    )
    part = jar.with_suffix(".part")
    spark_home.run(["jar", "cf", part, "-C", classes, "."])
    part.rename(jar)
    return jar


def command():
    """The command `faro`."""
    built = ["cargo", "build", "-q", "--locked", "-p", "faro-cli"]
    subprocess.run(built, cwd=ROOT, check=True)
    return ROOT / "target" / "debug" / "faro"


def other_version(jar, target, files=None):
    """A copy of Faro's jar that says it is version 9.9.9, or that has these files, by name."""
    files = files or {"META-INF/faro.properties": b"version=9.9.9\n"}
    with zipfile.ZipFile(jar) as old, zipfile.ZipFile(target, "w") as new:
        for item in old.infolist():
            new.writestr(item, files.get(item.filename, old.read(item)))
    return target


def faulty_library():
    """The native library with fault injection, in a target folder of its own: nothing else must
    ever find it."""
    target = ROOT / "target" / "faults"
    subprocess.run(
        [
            "cargo",
            "build",
            "-q",
            "--locked",
            "-p",
            "faro-jni",
            "--features",
            "faults",
            "--target-dir",
            str(target),
        ],
        cwd=ROOT,
        check=True,
    )
    return target / "debug" / "libfaro_jni.so"
