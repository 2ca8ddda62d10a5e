"""What is in dist/release, used as a user does. Run by tests/release/run, not by `make test`."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import artifacts
import oci
import pytest
import spark_home
from artifacts import ROOT
from harness import build, launch

RELEASE = ROOT / "dist" / "release"
JOB = Path(__file__).resolve().parent / "job.py"
LOGS = ROOT / "target" / "test-logs" / "release"
CLASS_PATH = "spark.executor.extraClassPath"
MASTER = "local-cluster[2,1,1024]"


@pytest.fixture(scope="module")
def version():
    return artifacts.project().version


@pytest.fixture(scope="module", autouse=True)
def release_is_there():
    if not (RELEASE / "SHA256SUMS").is_file():
        pytest.fail(f"there is no {RELEASE}/SHA256SUMS: make release")


class Site:
    """A Spark with a working folder of its own."""

    def __init__(self, name: str, place: Path):
        self.place = place
        home = spark_home.ensure_python(spark_home.versions_named([name])[0])
        self.home = launch.home_of_links(place, home)
        self.spark = name

    def submit(self, *words: object, **conf: object) -> list[str]:
        conf = {**launch.ALWAYS, **conf}
        program, jars = [None, JOB], [counters_jar()]
        return launch.spark_submit(self.home, MASTER, "release", conf, program, *words, jars=jars)

    def run(self, name: str, command: list[str], **environment: str) -> dict:
        """What the job wrote."""
        answers = self.place / f"{name}.json"
        full = {**launch.environment_for(self.home, short_lived=True), **environment}
        outcome = launch.drive([*command, str(answers)], full, self.place)
        log = LOGS / f"{name}-{self.spark}"
        log.mkdir(parents=True, exist_ok=True)
        (log / "driver.log").write_text(outcome.driver_log)
        launch.collect_executor_logs(self.home / "work", outcome, log)
        assert outcome.exit_code == 0, f"{outcome.driver_log[-3000:]}\nall logs: {log}"
        return json.loads(answers.read_text())


def counters_jar() -> Path:
    """The class with which the job asks executors what Faro counted."""
    source = ROOT / "tests/spark/jobs/io/faro/e2e/FaroCounters.java"
    return build.java_jar("release-counters", [source])


@pytest.fixture(params=["4.3.0", "3.5.9"])
def site(request, tmp_path):
    return Site(request.param, tmp_path)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The answers of stock Spark."""
    site = Site("4.3.0", tmp_path_factory.mktemp("stock"))
    result = site.run("stock", site.submit())
    assert all(result["answers"].values())
    assert list(result["counters"].values()) == [{}, {}]
    return result["answers"]


def check(result: dict, expected: dict) -> str:
    """Both executors read blocks from each other through Faro; the words for the report."""
    assert result["answers"] == expected
    executors = list(result["counters"].values())
    blocks = [
        int(sum(value for name, value in counters.items() if name.startswith("remoteBlocks.")))
        for counters in executors
    ]
    assert len(blocks) == 2
    assert all(blocks)
    assert [counters["fallbacks"] for counters in executors] == [0, 0]
    return f"{sum(blocks)} remote blocks through Faro"


def test_packages(site, version, expected, record_property):
    ivy = site.place / "ivy"
    words = ["--packages", f"io.faro:faro-spark:{version}"]
    words += ["--repositories", f"file://{RELEASE}/maven"]
    conf = {"spark.jars.ivy": ivy, "spark.shuffle.manager": launch.MANAGER}
    if site.spark.startswith("3."):
        jar = ivy / "jars" / f"io.faro_faro-spark-{version}.jar"
        conf[CLASS_PATH] = jar
    result = site.run("packages", site.submit(*words, **conf))
    record_property("detail", check(result, expected))
    # Nothing else was fetched.
    assert [path.name for path in (ivy / "jars").iterdir()] == [f"io.faro_faro-spark-{version}.jar"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The Python of a new environment in which pip installed the wheel."""
    place = tmp_path_factory.mktemp("venv")
    (wheel,) = RELEASE.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pip = [place / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-index", wheel], check=True)
    return place / "bin" / "python"


def test_pip(site, installed, expected, record_property):
    # The environment has no PySpark: it is the cache's, as if pip had installed it.
    zips = sorted((site.home / "python" / "lib").glob("*.zip"))
    settings = {"spark.master": MASTER, **launch.ALWAYS}
    if site.spark.startswith("3."):
        jar = subprocess.check_output([installed, "-m", "faro"], text=True).strip()
        settings.update(dict.fromkeys(("spark.driver.extraClassPath", CLASS_PATH), jar))
    command = [str(installed), str(JOB), "--faro", "--jar", str(counters_jar())]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    result = site.run(
        "pip",
        command,
        PYTHONPATH=os.pathsep.join(map(str, zips)),
        PYSPARK_PYTHON=str(installed),
    )
    record_property("detail", check(result, expected))


class TestImages:
    """What is in the archives has the sums that they say, and runs on its own root file system."""

    @pytest.fixture
    def unpacked(self, request, tmp_path, version):
        (archive,) = (RELEASE / "images").glob(f"{request.param}-{version}-*.tar")
        image = oci.unpack(archive, tmp_path / "root")
        yield image["config"], tmp_path / "root"
        shutil.rmtree(tmp_path / "root")

    def run(self, root, *words):
        if os.geteuid() != 0:
            pytest.skip("a root file system of its own needs root")
        return subprocess.run(["chroot", root, *words], capture_output=True, text=True, check=True)

    @pytest.mark.parametrize("unpacked", ["faro-serve"], indirect=True)
    def test_faro_serve(self, unpacked, version):
        config, root = unpacked
        command = root / config["Entrypoint"][0].lstrip("/")
        assert command.read_bytes() == (RELEASE / f"faro-{platform.machine()}").read_bytes()
        assert self.run(root, *config["Entrypoint"], "--version").stdout == f"faro {version}\n"

    @pytest.mark.parametrize("unpacked", ["faro-spark"], indirect=True)
    def test_faro_spark(self, unpacked, version):
        config, root = unpacked
        (jar,) = RELEASE.glob(f"maven/**/faro-spark-{version}.jar")
        assert (root / "opt/spark/jars/faro-spark.jar").read_bytes() == jar.read_bytes()
        assert "SPARK_HOME=/opt/spark" in config["Env"]
        assert (root / "opt/spark/bin/spark-submit").stat().st_mode & 0o100


class TestCommand:
    @pytest.fixture
    def faro(self):
        return RELEASE / f"faro-{platform.machine()}"

    def test_doctor_finds_a_fabric_that_works(self, faro):
        done = subprocess.run(
            [faro, "doctor", "--json"], stdout=subprocess.PIPE, text=True, check=False
        )
        report = json.loads(done.stdout)
        levels = {check["check"]: check["level"] for check in report["checks"]}
        assert report["verdict"] in {"well", "slower"}
        assert levels["tcp"] == levels["shm"] == "ok"
        # Whether libibverbs is here or not, dlopen answers; a static program would have no answer.
        library = next(check for check in report["checks"] if check["check"] == "library")
        assert re.search(r"libibverbs", library["message"])

    def test_advise_reads_a_log(self, faro):
        log = ROOT / "native/cli/tests/advise/logs/spark-3.4/app-20261124051907-0000"
        done = subprocess.run(
            [faro, "advise", log, "--json"], stdout=subprocess.PIPE, text=True, check=False
        )
        assert done.returncode == 0
        (application,) = json.loads(done.stdout)["applications"]
        assert application["verdict"] in {"helps", "perhaps", "does-not-help"}

    def test_version(self, faro, version):
        assert subprocess.check_output([faro, "--version"], text=True) == f"faro {version}\n"
