"""What the jobs on Spark need to be built: Java programs that run on every version, native code."""

import fcntl
import functools
import shutil
import zipfile
from pathlib import Path

import native_build
import spark_home

ROOT = Path(__file__).resolve().parents[3]
# Its classes have Java 8 signatures that all later versions still answer to.
COMPILE_AGAINST = "3.5.9"


def java_jar(name, sources, class_path=(), against=COMPILE_AGAINST):
    """A jar of these sources under target/tests-spark; built again when one of them, or a jar that
    they are compiled against besides Spark's (of the version `against`), is newer."""
    jar = ROOT / "target" / "tests-spark" / f"{name}.jar"
    jar.parent.mkdir(parents=True, exist_ok=True)
    # Several suites may run at a time; the others wait for the one that compiles.
    with jar.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        inputs = [*sources, *class_path]
        if not jar.exists() or any(i.stat().st_mtime >= jar.stat().st_mtime for i in inputs):
            _compile(jar, sources, class_path, against)
    return jar


def _compile(jar, sources, class_path, against):
    classes = jar.parent / f"{jar.stem}-classes"
    shutil.rmtree(classes, ignore_errors=True)
    classes.mkdir(parents=True)
    home = spark_home.ensure(spark_home.versions_named([against])[0])
    class_path = ":".join([f"{home}/jars/*", *map(str, class_path)])
    javac = ["javac", "--release", "8", "-nowarn", "-Xlint:-options"]
    spark_home.run([*javac, "-cp", class_path, "-d", classes, *sources])
    part = jar.with_suffix(".part")
    spark_home.run(["jar", "cf", part, "-C", classes, "."])
    part.rename(jar)


@functools.cache
def _native():
    """Where the native code of all tests is, up to date."""
    native_build.programs(native_build.WITHOUT_TESTS)
    return ROOT / "target" / "debug"


def command():
    """The command `faro`."""
    return _native() / "faro"


def other_version(jar, target, files=None):
    """A copy of Faro's jar that says it is version 9.9.9, or that has these files, by name."""
    files = files or {"META-INF/faro.properties": b"version=9.9.9\n"}
    with zipfile.ZipFile(jar) as old, zipfile.ZipFile(target, "w") as new:
        for item in old.infolist():
            new.writestr(item, files.get(item.filename, old.read(item)))
        for name in files.keys() - set(old.namelist()):
            new.writestr(name, files[name])
    return target


def faulty_library():
    """The native library of the tests, unoptimized; it injects faults where FARO_FAULTS is set."""
    return _native() / "libfaro_jni.so"
