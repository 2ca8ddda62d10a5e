"""The layout of what `make release` makes, from the jar of `make jar` and a javadoc of one page:
Maven reads the repository, pip installs the wheel, and nothing says when it was made."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import artifacts
import manifests
import maven
import oci
import plan
import pytest
import wheel
from artifacts import POM, ROOT

JAR = ROOT / "dist" / "faro-spark.jar"
FARO = JAR.with_name(f"faro-{platform.machine()}")
MACHINE = oci.ARCHITECTURES[platform.machine()]
# What Maven Central asks for.
ASKED = [
    *("name", "description", "url", "licenses/license/name", "licenses/license/url"),
    *("developers/developer/name", "scm/connection", "scm/url"),
]


@pytest.fixture(scope="module")
def project():
    if not JAR.exists():
        pytest.fail(f"{JAR} does not exist: make jar")
    return artifacts.project()


def write_all(folder: Path, project: artifacts.Project) -> Path:
    """The artifacts that do not take Maven to make."""
    javadoc = folder / "javadoc"
    javadoc.mkdir(parents=True)
    (javadoc / "index.html").write_text("<title>Faro</title>")
    release = folder / "release"
    maven.write_repository(release / "maven", project, JAR, JAR.with_suffix(".cdx.json"), javadoc)
    wheel.write_wheel(release, project, JAR)
    manifests.write_manifests(release, project)
    manifests.write_chart(release, project)
    write_image(folder, release, project)
    artifacts.write_sums(release)
    return release


def write_image(folder: Path, release: Path, project: artifacts.Project) -> None:
    """That of `faro serve`, on a base of one file."""
    (folder / "context").mkdir()
    (folder / "motd").write_text("base\n")
    (release / "images").mkdir()
    with (folder / "base.tar").open("wb") as out:
        artifacts.write_tar(out, {"etc/motd": folder / "motd"})
    recipe = oci.recipe(oci.DOCKERFILES["faro-serve"])
    context = oci.context_of("faro-serve", folder / "context" / "made", JAR, FARO)
    layers = [oci.copied(context, *one) for one in recipe.copies]
    target = release / "images" / f"faro-serve-{project.version}-{MACHINE}.tar"
    oci.write_archive(target, project.version, folder / "base.tar", layers, recipe.config)


@pytest.fixture(scope="module")
def release(tmp_path_factory, project):
    return write_all(tmp_path_factory.mktemp("release"), project)


def test_repository(release, project):
    """Files and sums are where Maven looks; the jar is that of `make jar`."""
    place = release / "maven" / "io" / "faro" / "faro-spark" / project.version
    stem = f"faro-spark-{project.version}"
    ends = (".pom", ".jar", "-sources.jar", "-javadoc.jar", "-cyclonedx.json")
    files = [f"{stem}{end}" for end in ends]
    sums = [f"{name}.{kind}" for name in files for kind in maven.SUMS]
    assert {path.name for path in place.iterdir()} == {*files, *sums}
    for name in sums:
        content = (place / name).with_suffix("").read_bytes()
        assert (place / name).read_text() == hashlib.new(
            name.rpartition(".")[2], content
        ).hexdigest()
    assert (place / f"{stem}.jar").read_bytes() == JAR.read_bytes()
    with zipfile.ZipFile(place / f"{stem}-sources.jar") as opened:
        sources = {name for name in opened.namelist() if name.endswith(".java")}
    with zipfile.ZipFile(JAR) as opened:
        classes = {name for name in opened.namelist() if name.endswith(".class")}
    # A class of a file that is named after another one has no file of its own name.
    folders = [{name.rpartition("/")[0] for name in names} for names in (classes, sources)]
    assert folders[0] == folders[1] != set()
    assert "io/faro/spark/FaroShuffleManager.java" in sources


def test_pom_has_what_maven_central_asks_for_and_no_dependency(project, monkeypatch):
    pom = ET.fromstring(maven.pom(project))
    names = ("groupId", "artifactId", "version", "packaging")
    found = [pom.findtext(f"{POM}{name}") for name in names]
    assert found == ["io.faro", "faro-spark", project.version, "jar"]
    for path in ASKED:
        assert pom.findtext("/".join(f"{POM}{part}" for part in path.split("/"))), path
    present = {child.tag.replace(POM, "") for child in pom}
    assert not {"parent", "dependencies", "dependencyManagement", "repositories"} & present
    # The address is a placeholder until the publisher gives one.
    monkeypatch.delenv(artifacts.VARIABLE, raising=False)
    assert not artifacts.project().is_placed
    monkeypatch.setenv(artifacts.VARIABLE, "https://forge.test/faro")
    given = maven.pom(artifacts.project())
    assert ET.fromstring(given).findtext(f"{POM}scm/{POM}connection") == (
        "scm:git:https://forge.test/faro.git"
    )
    assert "${" not in given
    monkeypatch.setenv(artifacts.VARIABLE, "forge.test/faro/")
    with pytest.raises(artifacts.Wrong, match=r"forge\.test"):
        artifacts.project()


def test_versions_that_differ_are_an_error(project, tmp_path):
    (tmp_path / "shuffle-plugin").mkdir()
    for name in ("pom.xml", "shuffle-plugin/pom.xml"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "Cargo.toml").write_text('version = "9.9.9"\n')
    with pytest.raises(artifacts.Wrong, match=r"pom.xml says version .*, Cargo.toml 9\.9\.9"):
        artifacts.project(tmp_path)
    with pytest.raises(artifacts.Wrong, match=r"0\.0\.9"):
        manifests.write_chart(tmp_path, project._replace(version="0.0.9"))


def test_pip_installs_the_wheel_and_python_finds_the_jar(release, tmp_path, project):
    (wheel_file,) = release.glob("*.whl")
    with zipfile.ZipFile(wheel_file) as opened:
        names = opened.namelist()
        (record,) = [name for name in names if name.endswith(".dist-info/RECORD")]
        lines = opened.read(record).decode().splitlines(keepends=True)
        wanted = [wheel.record_line(n, opened.read(n)) for n in names if n != record]
    assert sorted(lines) == sorted([*wanted, f"{record},,\n"])
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    install = [*pip, "install", "--quiet", "--no-index", "--target", target, wheel_file]
    subprocess.run(install, check=True)
    shown = subprocess.check_output([*pip, "list", "--path", target], text=True)
    assert f"faro-spark {project.version}" in " ".join(shown.split())
    for words in (["-m", "faro"], ["-c", "import faro; print(faro.jar())"]):
        command = [sys.executable, *words]
        out = subprocess.check_output(command, cwd=target, text=True, env={"PYTHONSAFEPATH": ""})
        assert Path(out.strip()) == target / "faro" / "faro-spark.jar"
    assert Path(out.strip()).read_bytes() == JAR.read_bytes()
    (target / "faro" / "faro-spark.jar").unlink()
    done = subprocess.run(command, cwd=target, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"there is no file {target}/faro/faro-spark.jar" in done.stderr


def test_the_command_writes_its_man_pages_and_completions(tmp_path):
    subprocess.run([FARO, "pages", tmp_path], check=True)
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert {"faro.1", "faro-serve.1", "faro.bash", "_faro", "faro.fish"} <= set(found)
    assert "faro-pages.1" not in found
    assert "socket-dir" in found["faro-serve.1"]
    assert "--socket-dir" in found["faro.bash"]


def test_the_command_needs_glibc_only(project):
    environment = {**os.environ, "LC_ALL": "C"}
    words = ["readelf", "--dynamic", "--wide", FARO]
    dynamic = subprocess.check_output(words, text=True, env=environment)
    needed = set(re.findall(r"\(NEEDED\).*\[(\w+)", dynamic))
    # libgcc_s where there is no zig.
    assert {"libc"} <= needed <= {"libc", "libm", "libdl", "libpthread", "libgcc_s", "ld"}
    assert subprocess.check_output([FARO, "--version"], text=True) == f"faro {project.version}\n"


def test_an_image_is_read_back_and_its_entry_point_runs(release, tmp_path, project):
    archive = release / "images" / f"faro-serve-{project.version}-{MACHINE}.tar"
    image = oci.unpack(archive, tmp_path)
    assert (image["architecture"], image["config"]["User"]) == (MACHINE, "185")
    assert (tmp_path / "etc/motd").read_text() == "base\n"
    command = [tmp_path / image["config"]["Entrypoint"][0].lstrip("/"), "--version"]
    assert subprocess.check_output(command, text=True) == f"faro {project.version}\n"


def test_certificates_do_not_say_when_they_were_imported(tmp_path):
    """Java takes what is left."""
    place, certificate = tmp_path / "store", str(tmp_path / "certificate")

    def keytool(store, *words):
        command = ["keytool", *words, "-storepass", "changeit", "-keystore", str(tmp_path / store)]
        environment = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}
        return subprocess.check_output(command, text=True, env=environment)

    keytool("keys", "-genkeypair", "-keyalg", "EC", "-alias", "own", "-dname", "CN=own")
    keytool("keys", "-exportcert", "-alias", "own", "-file", certificate)
    for name in ("first", "second"):
        words = ("-importcert", "-noprompt", "-alias", name, "-file", certificate)
        keytool("store", *words, "-storetype", "JKS")
    store = place.read_bytes()
    undated = oci.without_dates(store)
    assert undated != store
    assert len(undated) == len(store)
    assert oci.without_dates(undated) == undated
    place.write_bytes(undated)
    listed = re.findall(r"^(\w+), Jan 1, 1970, trusted", keytool("store", "-list"), re.M)
    assert sorted(listed) == ["first", "second"]


def test_dockerfiles_are_read_whole(tmp_path):
    cluster = oci.recipe(oci.DOCKERFILES["faro-spark"])
    assert cluster.config["WorkingDir"] == "/var/spark"
    assert cluster.config["Entrypoint"] == ["/usr/bin/tini", "--", "cluster"]
    assert "SPARK_LOCAL_DIRS=/var/spark/local" in cluster.config["Env"]
    assert (["faro-spark.jar"], "/opt/spark/jars/") in cluster.copies
    assert any("openjdk-17-jre-headless" in command for command in cluster.commands)
    other = tmp_path / "Dockerfile"
    for line in ("FROM scratch", "ADD a b", "COPY --chown=1 a b", "COPY a b\nRUN true"):
        other.write_text(f"{line}\n")
        with pytest.raises(artifacts.Wrong, match="without an engine"):
            oci.recipe(other)


def test_a_dry_run_has_a_place_for_each_file(release, tmp_path, project, monkeypatch):
    """Of the layout's release; `make release` does the same with its own."""
    for step in plan.STEPS:
        monkeypatch.delenv(step.variable, raising=False)
    told = plan.dry_run(release, project)
    names = [step.name for step in plan.STEPS]
    assert re.findall(r"^  \d\. (\w+)", told, re.M) == names
    assert names[-2:] == ["wheel", "maven"], "what cannot be taken back comes last"
    assert all(f"{step.variable} is not set" in told for step in plan.STEPS)
    # A host is the publisher's to name.
    assert all(place.startswith("$FARO_") for place in re.findall(r"//(\S+)", told))
    monkeypatch.setenv("FARO_CHARTS", "charts.test")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "helm").write_text("")
    (tmp_path / "helm").chmod(0o755)
    assert re.search(r"\d\. chart, 1 of the files: ready\n", plan.dry_run(release, project))
    extra = release / "surprise.bin"
    extra.write_text("")
    artifacts.write_sums(release)
    try:
        with pytest.raises(artifacts.Wrong, match=r"publishes surprise\.bin"):
            plan.dry_run(release, project)
    finally:
        extra.unlink()
        artifacts.write_sums(release)


def test_sums_name_every_file_and_are_the_same_again(release, tmp_path, project):
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=release, check=True)
    sums = (release / "SHA256SUMS").read_text()
    files = {path.relative_to(release).as_posix() for path in artifacts.files_below(release)}
    assert files - {line.split("  ")[1] for line in sums.splitlines()} == {"SHA256SUMS"}
    assert (write_all(tmp_path / "again", project) / "SHA256SUMS").read_text() == sums
