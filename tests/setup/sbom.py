"""The bills of materials of the jar and of the program `faro`: CycloneDX documents in JSON.

They have the Rust crates, what the toolchain links in besides, and the native libraries or programs
with their SHA-256. They are functions of Cargo.lock, pom.xml and these files: no time, no random
number, no path of this machine. cargo-cyclonedx is not used: it names the workspace's crates by
their absolute path, does not see the toolchain's part, and has 140 packages to compile on a new
machine.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import subprocess
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Callable, NamedTuple
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]
# The crates of the native library and of the program.
CRATE = "faro-jni"
COMMAND = "faro-cli"
ENTRY = "META-INF/sbom/faro-spark.cdx.json"
BUNDLED = "faro:bundledCode"
LICENCE = [{"expression": "Apache-2.0"}]


class Locked(NamedTuple):
    """What Cargo.lock says of a package; one of the workspace has neither source nor checksum."""

    source: str | None
    checksum: str | None
    dependencies: list[str]


def locked() -> dict[str, Locked]:
    """The packages of Cargo.lock, by `name@version`."""
    packages = {}
    for block in (ROOT / "Cargo.lock").read_text().split("[[package]]")[1:]:
        field = dict(re.findall(r'^(\w+) = "(.*)"$', block, re.M))
        dependencies = re.findall(r'^ "([^" ]+)[^"]*",$', block, re.M)
        packages[f"{field['name']}@{field['version']}"] = Locked(
            field.get("source"), field.get("checksum"), dependencies
        )
    return packages


class Crates:
    """The crates that a library or program is built from, with build scripts and tests left out."""

    LINE = re.compile(r"(\d+)(\S+) v(\S+)(?: \(.*\))?\t(.*?)(?: \(\*\))?")

    def __init__(self, crate: str, architectures: Iterable[str]):
        self.crate = crate
        self.licences: dict[str, str] = {}
        self.uses: dict[str, set[str]] = {}
        self.linked: set[str] = set()
        for target in [f"{arch}-unknown-linux-gnu" for arch in architectures]:
            self.linked.update(self._walk(target, "normal,no-proc-macro"))
            self._walk(target, "normal")

    def _walk(self, target: str, edges: str) -> list[str]:
        """Adds the tree of a target; returns the crates in it."""
        command = ["cargo", "tree", "--locked", "-p", self.crate, "--target", target]
        tree = subprocess.run(
            [*command, "--edges", edges, "--prefix", "depth", "--format", "{p}\t{l}"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        seen, path = [], []
        for line in tree.splitlines():
            match = self.LINE.fullmatch(line)
            if not match:
                raise ValueError(f"sbom: cargo tree wrote a line of another form: {line!r}")
            depth, crate = int(match[1]), f"{match[2]}@{match[3]}"
            # Older crates write A/B, which SPDX calls A OR B.
            self.licences[crate] = match[4].replace("/", " OR ")
            self.uses.setdefault(crate, set())
            path[depth:] = [crate]
            if depth:
                self.uses[path[depth - 1]].add(crate)
            seen.append(crate)
        return seen

    def root(self) -> str:
        """The crate itself, as `name@version`."""
        return next(crate for crate in self.licences if crate.startswith(f"{self.crate}@"))

    def components(self) -> list[dict]:
        packages = locked()
        return [self._component(crate, packages[crate]) for crate in sorted(self.licences)]

    def _component(self, crate: str, package: Locked) -> dict:
        name, version = crate.split("@")
        component = {
            "type": "library",
            "bom-ref": crate,
            "name": name,
            "version": version,
            # A macro runs in the compiler, and is not in the library.
            "scope": "required" if crate in self.linked else "excluded",
        }
        if package.checksum:
            # Of the package as the registry has it.
            component["hashes"] = [{"alg": "SHA-256", "content": package.checksum}]
        if self.licences[crate]:
            component["licenses"] = [{"expression": self.licences[crate]}]
        # The workspace's own crates are in no registry, so none may be looked up there.
        if package.source:
            component["purl"] = f"pkg:cargo/{name}@{quote(version)}"
        if "cc" in package.dependencies:
            text = "the crate's build script compiles C or assembly that the package brings"
            component["properties"] = [{"name": BUNDLED, "value": text}]
            # zstd-sys 2.1.2+zstd.1.5.7, lz4-sys 1.11.1+lz4-1.10.0
            inner = re.search(r"\+([a-z]\w*)[-.](\d[\w.]*)$", version)
            if inner:
                component["components"] = [
                    {
                        "type": "library",
                        "bom-ref": f"{crate}/{inner[1]}",
                        "name": inner[1],
                        "version": inner[2],
                        "description": f"C sources in the package {name}",
                    }
                ]
        return component


def crates_of(crate: str, architectures: Iterable[str]) -> Crates:
    """The same object each time, as cargo is asked for it."""
    return _crates(crate, tuple(sorted(architectures)))


@functools.cache
def _crates(crate: str, architectures: tuple[str, ...]) -> Crates:
    return Crates(crate, architectures)


def toolchain(library: bytes) -> list[dict]:
    """What compiler and linker put into a library or program."""
    rust = re.search(rb"rustc version (\d[\w.-]*) \((\w+)", library)
    if not rust:
        raise ValueError("sbom: the file does not say which rustc compiled it")
    version = rust[1].decode()
    parts = [
        {
            "type": "library",
            "bom-ref": f"rust-std@{version}",
            "name": "rust-std",
            "version": version,
            "description": f"Rust's standard library, of rustc {version} ({rust[2].decode()})",
            "scope": "required",
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
            "cpe": f"cpe:2.3:a:rust-lang:rust:{version}:*:*:*:*:*:*:*",
        }
    ]
    # Without zig the machine's libgcc_s.so unwinds.
    zig = re.search(rb"clang version (\d[\w.]*)", library)
    if zig and b"libgcc_s.so.1" not in library:
        version = zig[1].decode()
        parts.append(
            {
                "type": "library",
                "bom-ref": f"libunwind@{version}",
                "name": "libunwind",
                "version": version,
                "description": "LLVM's libunwind and zig's compiler-rt, which zig links in",
                "scope": "required",
                "licenses": [{"expression": "Apache-2.0 WITH LLVM-exception AND MIT"}],
            }
        )
    return parts


class Files(NamedTuple):
    """Libraries or programs as components, what leads from them to crates, and their crates."""

    components: list[dict]
    edges: dict[str, set[str]]
    crates: list[dict]


def built_of(crate: str, files: dict[str, Path], name_of: Callable[[str, Path], str]) -> Files:
    """The files of a crate, by architecture."""
    crates = crates_of(crate, files)
    components, edges, parts = [], dict(crates.uses), {}
    for arch, path in files.items():
        content = path.read_bytes()
        name = name_of(arch, path)
        components.append(
            {
                "type": "file",
                "bom-ref": name,
                "name": name,
                "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}],
            }
        )
        linked = {part["bom-ref"]: part for part in toolchain(content)}
        parts.update(linked)
        edges[name] = {crates.root(), *linked}
    return Files(components, edges, [*crates.components(), *(parts[ref] for ref in sorted(parts))])


def version() -> str:
    return re.search(r"<version>(.*?)</version>", (ROOT / "pom.xml").read_text())[1]


def text_of(subject: dict, components: list[dict], edges: dict[str, set[str]]) -> str:
    """The text of the document about a subject."""
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": {"version": version(), "licenses": LICENCE, **subject},
            "properties": [{"name": "cdx:reproducible", "value": "true"}],
        },
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": sorted(edges[ref])} for ref in sorted(edges)],
    }
    content = json.dumps(bom, sort_keys=True)
    bom["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, content)}"
    return json.dumps(bom, indent=2) + "\n"


def maven_library(name: str) -> dict:
    purl = f"pkg:maven/io.faro/{name}@{version()}"
    return {"type": "library", "bom-ref": purl, "group": "io.faro", "name": name, "purl": purl}


def document(libraries: dict[str, Path]) -> str:
    """The text of the document, for a jar with these libraries (by architecture)."""
    jar, api = maven_library("faro-spark"), maven_library("faro-jvm")
    api_part = {**api, "version": version(), "scope": "required", "licenses": LICENCE}
    files = built_of(
        CRATE, libraries, lambda arch, path: f"META-INF/native/linux-{arch}/{path.name}"
    )
    names = {file["bom-ref"] for file in files.components}
    edges = {jar["bom-ref"]: {api["bom-ref"], *names}, **files.edges}
    return text_of(jar, [api_part, *files.components, *files.crates], edges)


def of_commands(programs: dict[str, Path]) -> str:
    """The text of the document for these programs `faro` (by architecture)."""
    files = built_of(COMMAND, programs, lambda arch, _: f"faro-{arch}")
    subject = {"type": "application", "bom-ref": "faro", "name": "faro"}
    edges = {"faro": {file["bom-ref"] for file in files.components}, **files.edges}
    return text_of(subject, [*files.components, *files.crates], edges)
