"""THIRD-PARTY.txt: names, versions, licences and licence texts of all that is linked into the jar's
native libraries, or into the program `faro`.

The crates are those of the bill of materials (sbom.py), without what runs in the compiler only.
Their texts are from the packages that were compiled, those of Rust's standard library and of LLVM's
libunwind from the toolchains. A crate without a text is an error, so that it cannot be shipped
without one. cargo-about reads neither the notices of the standard library nor those of zig.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import sbom

ENTRY = "META-INF/THIRD-PARTY.txt"
# Beside the program `faro`.
BESIDE = "faro.THIRD-PARTY.txt"
TEXT = re.compile(r"(licen[sc]e|copying|notice|copyright|unlicense)([^a-z].*)?(?<!\.rs)", re.I)
# Folders of packages from which nothing is compiled into the crate.
ELSEWHERE = {"tests", "examples", "programs", "contrib"}
# Of software that is offered under a choice, a licence that is not taken.
NOT_TAKEN = re.compile(r"^\s*GNU GENERAL PUBLIC LICENSE", re.M)
# What the standard library is built from for other systems than Linux.
OTHER_SYSTEMS = ("windows", "wasi", "wit-", "r-efi", "vex-", "moto-", "hermit-", "fortanix-")
WIDTH = 100
HEAD = """\
Third-party software that is linked into {what}.

Each line names a part, its licence, and the numbers of the texts below that go with it. Where a
licence leaves a choice, all the texts that the part comes with are here.
"""


class Part(NamedTuple):
    """Something that is linked in: its texts by the names of their files."""

    name: str
    version: str
    licence: str
    texts: dict[str, str]


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def texts_of(package: Path) -> dict[str, str]:
    """The licence texts in a package's folder, by their path in it."""
    found = {}
    for path in sorted(package.rglob("*")):
        place = path.relative_to(package)
        if TEXT.fullmatch(path.name) and path.is_file() and not ELSEWHERE & set(place.parts):
            text = read(path)
            if not NOT_TAKEN.search(text):
                found[place.as_posix()] = text
    return found


def package_of(crate: str) -> Path:
    """Where cargo has unpacked a crate of the registry."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    name = crate.replace("@", "-")
    found = sorted((home / "registry" / "src").glob(f"*/{name}"))
    if not found:
        raise ValueError(f"licences: {name} is not in {home}/registry/src, where cargo unpacks it")
    return found[0]


def of_crates(crate: str, architectures: Iterable[str]) -> list[Part]:
    """The crates of others that are linked into a crate of the workspace."""
    crates = sbom.crates_of(crate, architectures)
    packages = sbom.locked()
    parts = []
    for one in sorted(crates.linked):
        if packages[one].source:
            name, version = one.split("@")
            licence = crates.licences[one]
            texts = texts_of(package_of(one))
            if not texts and "Apache-2.0" in re.split(r" OR |[()]", licence):
                # Faro is under this licence too, and its text is the same for all.
                texts = {"Apache-2.0": read(sbom.ROOT / "LICENSE")}
            if not texts:
                raise ValueError(f"licences: the package of {one} ({licence}) has no licence text")
            parts.append(Part(name, version, licence, texts))
    return parts


def of_standard_library(version: str) -> list[Part]:
    """Rust's standard library, with its toolchain's notices, and its own dependencies."""
    sysroot = subprocess.check_output(["rustc", "--print", "sysroot"], cwd=sbom.ROOT, text=True)
    documents = Path(sysroot.strip()) / "share" / "doc" / "rust"
    notices = documents / "COPYRIGHT-library.html"
    licence = "MIT OR Apache-2.0"
    if not notices.is_file():
        # Not all distributions have it.
        texts = {"Apache-2.0": read(sbom.ROOT / "LICENSE")}
        return [Part("rust-std", version, licence, texts)]
    own, *others = re.split(r"<h3>\W*", read(notices))
    named = sorted(path for path in (documents / "licenses").glob("*.txt") if path.stem in own)
    texts = {"COPYRIGHT": plain(own), **{path.name: read(path) for path in named}}
    parts = [Part("rust-std", version, licence, texts)]
    for text in others:
        name, version = re.match(r"([\w-]+?)-(\d[^<]*)</h3>", text).groups()
        licences = plain(re.search(r"<b>License:</b>(.*?)</p>", text)[1]).strip()
        files = re.findall(r"<summary><code>(.*?)</code>.*?<pre>(.*?)</pre>", text, re.S)
        if files and not name.startswith(OTHER_SYSTEMS):
            texts = {file: html.unescape(content) for file, content in files}
            parts.append(Part(name, version, f"{licences}; in rust-std", texts))
    return parts


def plain(markup: str) -> str:
    """The text of HTML, without empty lines."""
    text = html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"(?s)<head>.*</head>", "", markup)))
    return "\n".join(line.strip() for line in text.splitlines() if line.strip()) + "\n"


def of_toolchain(files: Iterable[Path]) -> list[Part]:
    """What compiler and linker have put into files."""
    parts = {part["bom-ref"]: part for file in files for part in sbom.toolchain(file.read_bytes())}
    found = []
    for part in parts.values():
        if part["name"] == "rust-std":
            found.extend(of_standard_library(part["version"]))
        else:
            # The folder of zig's library that build-native names to the linker.
            zig = (sbom.ROOT / "target" / "zig" / "lib").resolve()
            places = {"libunwind/LICENSE.TXT": zig / "libunwind", "LICENSE (zig)": zig.parent}
            texts = {
                name: read(place / name.split("/")[-1].split(" ")[0])
                for name, place in places.items()
            }
            licence = part["licenses"][0]["expression"]
            found.append(Part(part["name"], part["version"], licence, texts))
    return found


def document(what: str, parts: list[Part]) -> str:
    """The file about some parts; a text that several have is there once."""
    numbers: dict[str, int] = {}
    texts: list[str] = []
    holders: list[list[str]] = []
    lines = []
    for part in parts:
        title = f"{part.name} {part.version}"
        own = []
        for text in part.texts.values():
            key = " ".join(text.split())
            if key not in numbers:
                numbers[key] = len(texts) + 1
                texts.append("\n".join(line.rstrip() for line in text.strip("\r\n").splitlines()))
                holders.append([])
            own.append(numbers[key])
            holders[numbers[key] - 1].append(title)
        lines.append(f"{title}: {part.licence} [{', '.join(map(str, sorted(set(own))))}]\n")
    pieces = [HEAD.format(what=what), "\n", *lines]
    for number, (text, of) in enumerate(zip(texts, holders), 1):
        head = textwrap.fill(f"[{number}] {', '.join(dict.fromkeys(of))}", WIDTH)
        pieces += ["\n", "=" * WIDTH, f"\n{head}\n\n{text}\n"]
    return "".join(pieces)


def of_files(what: str, crate: str, files: dict[str, Path]) -> str:
    """The text of the file about libraries or programs (by architecture) of a crate."""
    parts = of_crates(crate, files)
    there = {(part.name, part.version) for part in parts}
    # The standard library may be built from a crate that is linked in anyway.
    others = [one for one in of_toolchain(files.values()) if (one.name, one.version) not in there]
    return document(what, parts + others)
