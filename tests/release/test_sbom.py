"""The jar of `make jar`: its bill of materials names what is in it, and nothing in it says where or
when it was built. The same of the command beside it."""

import hashlib
import json
import os
import platform
import re
import subprocess
import zipfile
from pathlib import Path

import pytest
import sbom

JAR = sbom.ROOT / "dist" / "faro-spark.jar"
LIBRARY = re.compile(r"META-INF/native/linux-(\w+)/libfaro_jni\.so")
VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read()) or "valid")
"""


@pytest.fixture(scope="module")
def jar():
    if not JAR.exists():
        pytest.fail(f"{JAR} does not exist: make jar")
    with zipfile.ZipFile(JAR) as opened:
        yield opened


@pytest.fixture(scope="module")
def text(jar):
    return jar.read(sbom.ENTRY).decode()


@pytest.fixture(scope="module")
def bill(text):
    return json.loads(text)


@pytest.fixture(scope="module")
def crates(bill):
    """The crates of the document, by `name@version`, without the other components."""
    packages = sbom.locked()
    return {part["bom-ref"]: part for part in bill["components"] if part["bom-ref"] in packages}


def tree_of(crate, architectures, edges):
    """The crates that cargo builds a crate from, as `name@version`."""
    found = set()
    for arch in architectures:
        command = ["cargo", "tree", "--locked", "-p", crate, "-e", edges]
        command += ["--target", f"{arch}-unknown-linux-gnu", "--prefix", "none"]
        lines = subprocess.check_output(command, cwd=sbom.ROOT, text=True)
        found.update(re.findall(r"^(\S+) v(\S+)", lines, re.M))
    return {"@".join(crate) for crate in found}


def tree(jar, edges):
    """The crates of the jar's libraries."""
    matches = [LIBRARY.fullmatch(name) for name in jar.namelist()]
    return tree_of("faro-jni", [match[1] for match in matches if match], edges)


def test_same_document_beside_the_jar(text):
    assert JAR.with_suffix(".cdx.json").read_text() == text


def answer_of_validator(text):
    python = subprocess.check_output(["tests/setup/tools", "cyclonedx"], cwd=sbom.ROOT, text=True)
    command = [python.strip(), "-c", VALIDATE]
    return subprocess.check_output(command, input=text, text=True).strip()


def test_schema(text):
    assert answer_of_validator(text) == "valid"


def test_every_crate_and_no_other(jar, crates):
    assert set(crates) == tree(jar, "normal")


def test_macros_are_not_in_the_library(jar, crates):
    linked = {ref for ref, part in crates.items() if part["scope"] == "required"}
    assert linked == tree(jar, "normal,no-proc-macro")


def test_crates_are_those_of_the_lock(crates):
    lock = (sbom.ROOT / "Cargo.lock").read_text()
    for part in crates.values():
        block = f'name = "{part["name"]}"\nversion = "{part["version"]}"\n'
        assert block in lock
        if "purl" in part:
            checksum = re.search(re.escape(block) + r'source = ".*"\nchecksum = "(.*)"', lock)[1]
            assert part["hashes"] == [{"alg": "SHA-256", "content": checksum}]
            version = part["version"].replace("+", "%2B")
            assert part["purl"] == f"pkg:cargo/{part['name']}@{version}"
        else:
            assert part["name"].startswith("faro-")
        assert part["licenses"][0]["expression"]


def test_bundled_c_is_named(crates):
    inner = {ref: part["components"][0] for ref, part in crates.items() if "components" in part}
    assert inner
    for ref, part in inner.items():
        assert re.search(rf"\+{part['name']}[-.]{re.escape(part['version'])}$", ref)
        assert crates[ref]["properties"][0]["name"] == sbom.BUNDLED


def test_nothing_in_the_jar_is_unnamed(jar, bill):
    """Classes of others, or another native library, need a component of their own."""
    files = {part["name"] for part in bill["components"] if part["type"] == "file"}
    classes = [name for name in jar.namelist() if name.endswith(".class")]
    assert classes
    assert all(name.startswith("io/faro/") for name in classes)
    native = [name for name in jar.namelist() if re.match(r"META-INF/native/.*[^/]$", name)]
    assert set(native) == files


def test_every_edge_leads_to_a_component(bill):
    refs = {part["bom-ref"] for part in bill["components"]}
    refs.add(bill["metadata"]["component"]["bom-ref"])
    for edge in bill["dependencies"]:
        assert edge["ref"] in refs
        assert refs.issuperset(edge["dependsOn"])


def test_jar_has_no_time_order_or_path_of_the_build(jar):
    """A short part of `make check-reproducible`."""
    names = jar.namelist()
    assert names[1] == "META-INF/MANIFEST.MF"
    assert names[2:] == sorted(names[2:])
    assert {entry.date_time for entry in jar.infolist()} == {(2025, 1, 1, 0, 0, 0)}
    cargo_home = os.environ.get("CARGO_HOME", Path.home() / ".cargo")
    for place in (sbom.ROOT, cargo_home, Path.home() / ".cache"):
        path = f"{place}/".encode()
        assert [name for name in names if path in jar.read(name)] == []


class TestCommand:
    @pytest.fixture(scope="class")
    def text(self):
        return JAR.with_name("faro.cdx.json").read_text()

    @pytest.fixture(scope="class")
    def programs(self):
        """The commands beside the jar, by architecture."""
        found = {arch: JAR.with_name(f"faro-{arch}") for arch in ("x86_64", "aarch64")}
        return {arch: path for arch, path in found.items() if path.exists()}

    def test_schema(self, text):
        assert answer_of_validator(text) == "valid"

    def test_names_the_programs_and_every_crate(self, text, programs):
        parts = json.loads(text)["components"]
        assert platform.machine() in programs
        assert {part["name"]: part["hashes"] for part in parts if part["type"] == "file"} == {
            path.name: [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}]
            for path in programs.values()
            for content in [path.read_bytes()]
        }
        packages = sbom.locked()
        crates = {part["bom-ref"] for part in parts if part["bom-ref"] in packages}
        assert crates == tree_of("faro-cli", programs, "normal")

    def test_has_no_path_of_the_build(self, programs):
        for path in programs.values():
            content = path.read_bytes()
            for place in (sbom.ROOT, Path.home() / ".cargo", Path.home() / ".cache"):
                assert f"{place}/".encode() not in content
