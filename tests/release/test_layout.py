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
import pytest
import wheel
from artifacts import POM, ROOT

JAR = ROOT / "dist" / "faro-spark.jar"
BILL = JAR.with_suffix(".cdx.json")


@pytest.fixture(scope="module")
def project():
    return artifacts.project()


@pytest.fixture(scope="module", autouse=True)
def jar_is_there():
    if not JAR.exists():
        pytest.fail(f"{JAR} does not exist: make jar")


def write_all(folder: Path, project: artifacts.Project) -> Path:
    """The artifacts that do not take Maven to make."""
    javadoc = folder / "javadoc"
    javadoc.mkdir(parents=True)
    (javadoc / "index.html").write_text("<title>Faro</title>")
    release = folder / "release"
    maven.write_repository(release / "maven", project, JAR, BILL, javadoc)
    wheel.write_wheel(release, project, JAR)
    manifests.write_manifests(release, project)
    artifacts.write_sums(release)
    return release


@pytest.fixture(scope="module")
def release(tmp_path_factory, project):
    return write_all(tmp_path_factory.mktemp("release"), project)


@pytest.fixture(scope="module")
def place(release, project):
    return release / "maven" / "io" / "faro" / "faro-spark" / project.version


@pytest.fixture(scope="module")
def wheel_file(release):
    (found,) = release.glob("*.whl")
    return found


class TestRepository:
    def test_files_are_where_maven_looks(self, place, project):
        stem = f"faro-spark-{project.version}"
        files = [
            f"{stem}{end}"
            for end in (".pom", ".jar", "-sources.jar", "-javadoc.jar", "-cyclonedx.json")
        ]
        sums = [f"{name}.{kind}" for name in files for kind in ("md5", "sha1", "sha256", "sha512")]
        assert {path.name for path in place.iterdir()} == {*files, *sums}

    def test_checksums_fit(self, place):
        for path in place.iterdir():
            algorithm = path.suffix.lstrip(".")
            if algorithm in maven.SUMS:
                content = path.with_suffix("").read_bytes()
                assert path.read_text() == hashlib.new(algorithm, content).hexdigest()

    def test_jar_is_the_one_of_make_jar(self, place, project):
        jar = place / f"faro-spark-{project.version}.jar"
        assert jar.read_bytes() == JAR.read_bytes()

    def test_pom_has_what_maven_central_asks_for_and_no_dependency(self, place, project):
        pom = ET.parse(place / f"faro-spark-{project.version}.pom").getroot()
        found = {child.tag.replace(POM, ""): child for child in pom}
        assert [found[n].text for n in ("groupId", "artifactId", "version", "packaging")] == [
            "io.faro",
            "faro-spark",
            project.version,
            "jar",
        ]
        for path in (
            "name",
            "description",
            "url",
            "licenses/license/name",
            "licenses/license/url",
            "developers/developer/name",
            "scm/connection",
            "scm/url",
        ):
            assert pom.findtext("/".join(f"{POM}{part}" for part in path.split("/"))), path
        assert not {"parent", "dependencies", "dependencyManagement", "repositories"} & set(found)

    def test_sources_of_all_classes(self, place, project):
        stem = f"faro-spark-{project.version}"
        with zipfile.ZipFile(place / f"{stem}-sources.jar") as opened:
            sources = set(opened.namelist())
        with zipfile.ZipFile(JAR) as opened:
            classes = [name for name in opened.namelist() if name.endswith(".class")]
        assert classes
        tops = {name.removesuffix(".class").split("$")[0] + ".java" for name in classes}
        # A class of a file that is named after another one has no file of its own name.
        folders = {name.rpartition("/")[0] for name in tops}
        assert folders == {name.rpartition("/")[0] for name in sources if name.endswith(".java")}
        assert "io/faro/spark/FaroShuffleManager.java" in sources & tops


class TestWheel:
    def test_record_names_every_file_with_its_sum(self, wheel_file):
        with zipfile.ZipFile(wheel_file) as opened:
            names = opened.namelist()
            (record,) = [name for name in names if name.endswith(".dist-info/RECORD")]
            lines = opened.read(record).decode().splitlines()
            for line in lines:
                name = line.split(",")[0]
                if name != record:
                    assert line == wheel.record_line(name, opened.read(name)).rstrip()
        assert sorted(line.split(",")[0] for line in lines) == sorted(names)

    def test_pip_installs_it_and_python_finds_the_jar(self, wheel_file, tmp_path, project):
        target = tmp_path / "site"
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        install = [*pip, "install", "--quiet", "--no-index", "--target", target, wheel_file]
        subprocess.run(install, check=True)
        shown = subprocess.check_output([*pip, "list", "--path", target], text=True)
        assert f"faro-spark {project.version}" in " ".join(shown.split())
        for words in (["-m", "faro"], ["-c", "import faro; print(faro.jar())"]):
            out = subprocess.check_output(
                [sys.executable, *words], cwd=target, text=True, env={"PYTHONSAFEPATH": ""}
            )
            assert Path(out.strip()) == target / "faro" / "faro-spark.jar"
        assert Path(out.strip()).read_bytes() == JAR.read_bytes()

    def test_a_package_without_its_jar_says_so(self, tmp_path):
        place = str(wheel.PACKAGE.parent)
        code = f"import sys; sys.path.insert(0, {place!r}); import faro; faro.jar()"
        done = subprocess.run(
            [sys.executable, "-B", "-c", code],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert f"there is no file {wheel.PACKAGE}/faro-spark.jar" in done.stderr


class TestCommand:
    """The command of `make jar` for this machine."""

    def test_needs_glibc_only(self):
        faro = JAR.with_name(f"faro-{platform.machine()}")
        dynamic = subprocess.check_output(
            ["readelf", "--dynamic", "--wide", faro], text=True, env={**os.environ, "LC_ALL": "C"}
        )
        needed = set(re.findall(r"\(NEEDED\).*\[(\w+)", dynamic))
        # libgcc_s where there is no zig.
        assert {"libc"} <= needed <= {"libc", "libm", "libdl", "libpthread", "libgcc_s", "ld"}

    def test_runs(self, project):
        faro = JAR.with_name(f"faro-{platform.machine()}")
        assert (
            subprocess.check_output([faro, "--version"], text=True) == f"faro {project.version}\n"
        )


class TestManifests:
    def test_kustomize_finds_what_its_base_names(self, release, project):
        with zipfile.ZipFile(release / f"faro-kubernetes-{project.version}.zip") as opened:
            texts = {name: opened.read(name).decode() for name in opened.namelist()}
        base = texts.pop("kubernetes/kustomization.yaml")
        named = re.findall(r"^  - (\S+\.yaml)$", base, re.M)
        assert named
        assert {f"kubernetes/{name}" for name in named} <= set(texts)

    def test_an_image_of_another_version_is_an_error(self, tmp_path, project):
        other = project._replace(version="0.0.9")
        with pytest.raises(artifacts.Wrong, match=r"0\.0\.9"):
            manifests.write_manifests(tmp_path, other)


class TestAll:
    def test_sums_name_every_file(self, release):
        subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=release, check=True)
        named = {line.split("  ")[1] for line in (release / "SHA256SUMS").read_text().splitlines()}
        files = {path.relative_to(release).as_posix() for path in artifacts.files_below(release)}
        assert files - named == {"SHA256SUMS"}

    def test_made_again_it_is_the_same(self, release, tmp_path, project):
        other = write_all(tmp_path / "again", project)
        assert (other / "SHA256SUMS").read_text() == (release / "SHA256SUMS").read_text()

    def test_the_address_is_a_placeholder_until_the_publisher_gives_one(self, monkeypatch):
        monkeypatch.delenv(artifacts.VARIABLE, raising=False)
        assert not artifacts.project().is_placed
        monkeypatch.setenv(artifacts.VARIABLE, "https://forge.test/faro")
        given = artifacts.project()
        assert given.is_placed
        pom = ET.fromstring(maven.pom(given))
        assert pom.findtext(f"{POM}url") == "https://forge.test/faro"
        assert pom.findtext(f"{POM}scm/{POM}connection") == "scm:git:https://forge.test/faro.git"
        assert "${" not in maven.pom(given)
        monkeypatch.setenv(artifacts.VARIABLE, "forge.test/faro/")
        with pytest.raises(artifacts.Wrong, match=r"forge\.test"):
            artifacts.project()

    def test_versions_that_differ_are_an_error(self, tmp_path):
        (tmp_path / "shuffle-plugin").mkdir()
        for name in ("pom.xml", "shuffle-plugin/pom.xml"):
            (tmp_path / name).write_text((ROOT / name).read_text())
        (tmp_path / "Cargo.toml").write_text('version = "9.9.9"\n')
        with pytest.raises(artifacts.Wrong, match=r"pom.xml says version .*, Cargo.toml 9\.9\.9"):
            artifacts.project(tmp_path)
