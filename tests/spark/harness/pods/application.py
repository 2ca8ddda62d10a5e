"""An application whose executors are pods: the jobs of tests/spark/jobs on a local-cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from harness import build, launch, scenarios

from . import network, seccomp
from .pod import Pod

HERE = Path(__file__).resolve().parent
# Not below /tmp, which a pod has of its own, and not below a home, which user 185 cannot enter.
PLACES = Path("/var/tmp")
NEEDS = ("ip", "nsenter")
# Words of a pod's description, for files of an application.
FARO_JAR, BROKEN_JAR, MUSL = "@faro-jar@", "@broken-jar@", "@musl@"
# Found in the memory of a process under the name of musl's loader.
MUSL_FILE = "ld-musl-x86_64.so.1"
LIBRARY = "META-INF/native/linux-x86_64/libfaro_jni.so"
# What Spark's entry point writes for the user of its images. Without a line Hadoop's login fails,
# and stock Spark does not start; with a read-only root file system the image has to have it.
PASSWD = "root:x:0:0:root:/root:/bin/sh\n185:x:185:0:anonymous uid:/opt/spark:/bin/false\n"


@dataclass
class Case:
    scenario: scenarios.Scenario
    # By executor.
    pods: list[Pod]
    links: int = 1
    # Executors whose first link does not carry anything.
    cut: tuple[int, ...] = ()
    # Patterns: one line each of that executor's log.
    says: dict[int, tuple[str, ...]] = field(default_factory=dict)
    # Patterns that no line of an executor's log has, and of that one's.
    never_says: tuple[str, ...] = ()
    never_said_by: dict[int, tuple[str, ...]] = field(default_factory=dict)
    short: bool = False  # in `make test` too
    musl: bool = False  # makes MUSL and BROKEN_JAR

    @property
    def name(self) -> str:
        return self.scenario.name


def why_not():
    """Why there can be no pods here; empty: there can."""
    if os.geteuid():
        return "pods need root: they are made of namespaces and mounts"
    if not seccomp.supported():
        return "the pods' seccomp filter has the system calls of x86-64"
    missing = [name for name in NEEDS if not shutil.which(name)]
    if missing:
        return f"pods need {', '.join(missing)}"
    try:
        network.Network([0]).close()
    except RuntimeError as error:
        return f"no network namespaces can be made here: {error}"
    return ""


def linked(source, target):
    """The same files at another place, for users who cannot enter the first."""
    copy = shutil.copytree if source.is_dir() else shutil.copy2
    try:
        if source.is_dir():
            shutil.copytree(source, target, copy_function=os.link)
        else:
            os.link(source, target)
    except OSError:
        if target.exists():
            shutil.rmtree(target) if target.is_dir() else target.unlink()
        copy(source, target)
    return target


def run(home, case, jobs_jar, faro_jar, log_dir):
    """As launch.run, with executors in pods. Their jars are on the class path, as in an image."""
    place = Path(tempfile.mkdtemp(prefix="faro-pods-", dir=PLACES))
    place.chmod(0o755)
    net = None
    try:
        net = network.Network(range(len(case.pods)), case.links)
        return _run_in(place, net, home, case, jobs_jar, faro_jar, log_dir)
    finally:
        if net:
            net.close()
        shutil.rmtree(place, ignore_errors=True)


def _run_in(place, net, home, case, jobs_jar, faro_jar, log_dir):
    own_home = linked(home, place / "home")
    shutil.rmtree(own_home / "work", ignore_errors=True)
    app, scratch = place / "app", place / "scratch"
    for directory in (app, scratch, place / "local"):
        directory.mkdir()
    jars = [linked(faro_jar, app / "faro.jar"), linked(jobs_jar, app / "jobs.jar")]
    scratch.chmod(0o777)
    words = {FARO_JAR: jars[0]}
    if case.musl:
        words.update({BROKEN_JAR: app / "broken.jar", MUSL: app / MUSL_FILE})
        build.other_version(faro_jar, words[BROKEN_JAR], {LIBRARY: b"no library of this system"})
        nothing = ["-shared", "-nostdlib", "-x", "c", "/dev/null", "-o", str(words[MUSL])]
        subprocess.run(["cc", *nothing], check=True)
    specs = specs_of(place, net, case, words)
    (place / "pods.json").write_text(json.dumps(specs))
    for executor in case.cut:
        net.cut(executor, 0)
    java = launch.java_home(
        place, f'exec {sys.executable} {HERE}/enter.py {place}/pods.json "$@"\n'
    )
    conf = conf_of(place, net, case, java)
    program = ["io.faro.e2e.Jobs", "spark-internal", scratch, *case.scenario.cases]
    command = launch.spark_submit(
        own_home,
        f"local-cluster[{len(case.pods)},{case.scenario.cores},1024]",
        f"faro-pods-{case.name}",
        conf,
        program,
        *("--driver-memory", "1024m"),
        jars_first=jars,
    )
    command = net.command(command)
    environment = launch.environment_for(own_home, short_lived=True)
    environment["SPARK_LOCAL_IP"] = net.driver_address
    log_dir.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    try:
        outcome = launch.drive(command, environment, place)
    finally:
        for log in place.glob("*.log"):
            shutil.copy(log, log_dir / log.name)
    outcome.seconds = time.monotonic() - started
    launch.collect_executor_logs(own_home / "work", outcome, log_dir)
    return outcome


def conf_of(place, net, case, java):
    scenario = case.scenario
    conf = {
        **launch.ALWAYS,
        "spark.local.dir": str(place / "local"),
        "spark.executorEnv.JAVA_HOME": str(java),
        # Stock Spark needs it with a /tmp that is noexec: zstd's library is extracted to there.
        "spark.shuffle.mapStatus.compression.codec": "lz4",
        # An executor that cannot start is not started a thousand times.
        "spark.deploy.maxExecutorRetries": "0",
        "spark.driver.host": net.driver_address,
        "spark.driver.bindAddress": net.driver_address,
        "spark.shuffle.manager": launch.MANAGER,
        "spark.faro.fallback": scenario.fallback,
    }
    return {**conf, **scenario.conf}


def specs_of(place, net, case, words):
    specs = {}
    for executor, pod in enumerate(case.pods):
        at = pod.network_of or executor
        address = network.address(0, at)
        spec = pod.with_(texts={"/etc/passwd": PASSWD, **pod.texts}).spec(
            network=net.of(at),
            address=address,
            place=str(place),
            # A directory of the pod's own, as an emptyDir is.
            local=str(place / "volumes" / str(executor) / "spark-x" / "executor-x"),
            java=os.path.realpath(launch.java_program()),
        )
        text = json.dumps(spec)
        for word, meaning in words.items():
            text = text.replace(word, str(meaning))
        specs[str(executor)] = json.loads(text)
    return specs
