"""Bills of materials and licences of the jar of `make jar` and of the command beside it: they name
what is linked in, each part has its texts, and nothing says where or when it was built."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import zipfile
from pathlib import Path

import licences
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
LINE = re.compile(r"^(\S+) (\S+): (.+) \[([\d, ]+)\]$", re.M)
RULE = re.compile(rf"^={{{licences.WIDTH}}}$", re.M)
# What a text of each licence says.
WORDS = {
    "MIT": "permission is hereby granted, free of charge",
    "Apache-2.0": "apache license",
    "BSD-3-Clause": "redistribution and use in source and binary forms",
    "BSD-2-Clause": "redistribution and use in source and binary forms",
    "ISC": "permission to use, copy, modify, and",
    "Zlib": "'as-is', without any express or implied",
}
PLACES = [sbom.ROOT, os.environ.get("CARGO_HOME", Path.home() / ".cargo"), Path.home() / ".cache"]


class Made:
    """The jar, or the programs beside it."""

    def __init__(self, crate: str):
        self.crate = crate
        if crate == "faro-jni":
            with zipfile.ZipFile(JAR) as jar:
                self.files = {name: jar.read(name) for name in jar.namelist()}
            self.text = self.files[sbom.ENTRY].decode()
            self.licences = self.files[licences.ENTRY].decode()
            self.native = {n: c for n, c in self.files.items() if LIBRARY.fullmatch(n)}
            self.archs = [LIBRARY.fullmatch(name)[1] for name in self.native]
        else:
            self.archs = [a for a in ("x86_64", "aarch64") if (JAR.parent / f"faro-{a}").exists()]
            self.native = {f"faro-{a}": (JAR.parent / f"faro-{a}").read_bytes() for a in self.archs}
            self.files = self.native
            self.text = (JAR.parent / "faro.cdx.json").read_text()
            self.licences = (JAR.parent / licences.BESIDE).read_text()
        self.bill = json.loads(self.text)
        packages = sbom.locked()
        parts = {part["bom-ref"]: part for part in self.bill["components"]}
        self.crates = {ref: part for ref, part in parts.items() if ref in packages}

    def tree(self, edges: str) -> set[str]:
        """The crates that cargo builds it from, as `name@version`."""
        found = set()
        for arch in self.archs:
            command = ["cargo", "tree", "--locked", "-p", self.crate, "-e", edges]
            command += ["--target", f"{arch}-unknown-linux-gnu", "--prefix", "none"]
            lines = subprocess.check_output(command, cwd=sbom.ROOT, text=True)
            found.update(re.findall(r"^(\S+) v(\S+)", lines, re.M))
        return {"@".join(crate) for crate in found}


@pytest.fixture(scope="module", params=["faro-jni", "faro-cli"])
def made(request):
    if not JAR.exists():
        pytest.fail(f"{JAR} does not exist: make jar")
    return Made(request.param)


def test_schema(made):
    python = subprocess.check_output(["tests/setup/tools", "cyclonedx"], cwd=sbom.ROOT, text=True)
    command = [python.strip(), "-c", VALIDATE]
    assert subprocess.check_output(command, input=made.text, text=True).strip() == "valid"


def test_every_file_and_every_crate_is_named(made):
    parts = [part for part in made.bill["components"] if part["type"] == "file"]
    assert {part["name"]: part["hashes"] for part in parts} == {
        name: [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}]
        for name, content in made.native.items()
    }
    assert platform.machine() in made.archs
    assert set(made.crates) == made.tree("normal")
    linked = {ref for ref, part in made.crates.items() if part["scope"] == "required"}
    assert linked == made.tree("normal,no-proc-macro")


def test_crates_are_those_of_the_lock(made):
    lock = (sbom.ROOT / "Cargo.lock").read_text()
    for part in made.crates.values():
        block = f'name = "{part["name"]}"\nversion = "{part["version"]}"\n'
        assert block in lock
        assert part["licenses"][0]["expression"]
        if "purl" in part:
            checksum = re.search(re.escape(block) + r'source = ".*"\nchecksum = "(.*)"', lock)[1]
            assert part["hashes"] == [{"alg": "SHA-256", "content": checksum}]
            version = part["version"].replace("+", "%2B")
            assert part["purl"] == f"pkg:cargo/{part['name']}@{version}"
        else:
            assert part["name"].startswith("faro-")
    inner = {ref: part for ref, part in made.crates.items() if "components" in part}
    assert inner or made.crate == "faro-cli"
    for ref, part in inner.items():
        bundled = part["components"][0]
        assert re.search(rf"\+{bundled['name']}[-.]{re.escape(bundled['version'])}$", ref)
        assert part["properties"][0]["name"] == sbom.BUNDLED


def test_every_edge_leads_to_a_component(made):
    refs = {part["bom-ref"] for part in made.bill["components"]}
    refs.add(made.bill["metadata"]["component"]["bom-ref"])
    for edge in made.bill["dependencies"]:
        assert refs.issuperset([edge["ref"], *edge["dependsOn"]])


def test_what_is_linked_in_has_a_line_with_its_licence_and_texts(made):
    linked = {
        f"{part['name']} {part['version']}": part["licenses"][0]["expression"]
        for part in made.bill["components"]
        if part.get("scope") == "required" and not part["name"].startswith("faro-")
    }
    head, *pieces = RULE.split(made.licences)
    texts = dict(re.match(r"\s*\[(\d+)\] .*?\n\n(.*)", piece, re.S).groups() for piece in pieces)
    lines = {f"{name} {version}": more for name, version, *more in LINE.findall(head)}
    assert {name: lines[name][0] for name in linked} == linked != {}
    assert {n for n, more in lines.items() if not more[0].endswith("; in rust-std")} == set(linked)
    assert set(texts) == {one for _, numbers in lines.values() for one in numbers.split(", ")}
    assert all(text.strip() for text in texts.values())
    assert not any("GNU GENERAL PUBLIC LICENSE" in text[:500] for text in texts.values())
    for name, licence in linked.items():
        own = " ".join(" ".join(texts[n] for n in lines[name][1].split(", ")).lower().split())
        choices = [choice.split(" AND ") for choice in licence.split(" OR ")]
        words = [[WORDS.get(one.split(" WITH ")[0], one) for one in all_of] for all_of in choices]
        assert any(all(one in own for one in all_of) for all_of in words), name


def test_a_package_without_a_text_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(licences, "package_of", lambda _: tmp_path)
    with pytest.raises(ValueError, match="has no licence text"):
        licences.of_crates(sbom.CRATE, ["x86_64"])


def test_nothing_has_a_time_or_path_of_the_build(made):
    """A short part of `make check-reproducible`."""
    for place in PLACES:
        path = f"{place}/".encode()
        assert [name for name, content in made.files.items() if path in content] == []
    if made.crate == "faro-cli":
        return
    names = list(made.files)
    assert names[1] == "META-INF/MANIFEST.MF"
    assert names[2:] == sorted(names[2:])
    with zipfile.ZipFile(JAR) as jar:
        assert {entry.date_time for entry in jar.infolist()} == {(2025, 1, 1, 0, 0, 0)}
    # Classes of others, or another native library, need a component of their own.
    assert all(name.startswith("io/faro/") for name in names if name.endswith(".class"))
    assert {n for n in names if re.match(r"META-INF/native/.*[^/]$", n)} == set(made.native)
    assert JAR.with_suffix(".cdx.json").read_text() == made.text
