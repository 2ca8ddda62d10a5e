"""What the artifacts of a release have in common: the project's description, archives that are a
function of their content, and checksums."""

from __future__ import annotations

import calendar
import hashlib
import os
import re
import stat
import tarfile
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path
from typing import BinaryIO, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# As in pom.xml (project.build.outputTimestamp).
DATE = (2025, 1, 1, 0, 0, 0)
EPOCH = calendar.timegm(DATE)
POM = "{http://maven.apache.org/POM/4.0.0}"
# Addresses under it are reserved (RFC 2606).
PLACEHOLDER = ".example/"
# The property of pom.xml with the repository's address, and the variable that goes before it.
ADDRESS = "faro.url"
VARIABLE = "FARO_URL"
ALLOWED = re.compile(r"https://[^\s/]+/\S*[^\s/]")


class Wrong(Exception):
    """What keeps the release from being made; the reason."""


class Project(NamedTuple):
    """What pom.xml and the plug-in's pom.xml say."""

    group: str
    artifact: str
    version: str
    name: str
    description: str
    url: str
    # The elements that Maven Central asks for, by their names, as XML.
    parts: dict[str, ET.Element]

    @property
    def is_placed(self) -> bool:
        """Whether the address is a real one."""
        return PLACEHOLDER not in f"{self.url}/"


def project(root: Path = ROOT) -> Project:
    """Reads the description; an element that is missing is an error."""
    parent = ET.parse(root / "pom.xml").getroot()
    plugin = ET.parse(root / "shuffle-plugin" / "pom.xml").getroot()

    def text(pom: ET.Element, name: str) -> str:
        found = pom.findtext(f"{POM}{name}")
        if not found:
            raise Wrong(f"pom.xml has no element {name}")
        return found

    address = os.environ.get(VARIABLE) or text(parent, f"properties/{POM}{ADDRESS}")
    if not ALLOWED.fullmatch(address):
        raise Wrong(f"the address {address!r} is not possible; https://HOST/PATH is")
    for element in parent.iter():
        if element.text:
            element.text = element.text.replace(f"${{{ADDRESS}}}", address)
    parts = {}
    for name in ("licenses", "developers", "scm"):
        element = parent.find(f"{POM}{name}")
        if element is None:
            raise Wrong(f"pom.xml has no element {name}")
        parts[name] = element
    version = text(parent, "version")
    crates = re.search(r'^version = "(.*)"', (root / "Cargo.toml").read_text(), re.M)[1]
    if version != crates:
        raise Wrong(f"pom.xml says version {version}, Cargo.toml {crates}")
    return Project(
        text(parent, "groupId"),
        text(plugin, "artifactId"),
        version,
        text(plugin, "name"),
        text(parent, "description"),
        text(parent, "url"),
        parts,
    )


def archive(path: Path, entries: dict[str, bytes], first: tuple[str, ...] = ()) -> None:
    """Writes a zip file: entries in the order of their names after those in `first`, one date."""
    order = sorted(entries, key=lambda name: (name not in first, name))
    with zipfile.ZipFile(path, "w") as opened:
        for name in order:
            entry = zipfile.ZipInfo(name, DATE)
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            opened.writestr(entry, entries[name])


def write_tar(out: BinaryIO, entries: dict[str, Path]) -> None:
    """Writes files, links and folders by their names in it, in the order of these, as root's and of
    one date: of a file's mode only whether it can be run counts."""
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for name, path in sorted(entries.items()):
            entry = tarfile.TarInfo(name)
            entry.mtime = EPOCH
            mode = path.lstat().st_mode
            entry.mode = 0o755 if stat.S_ISDIR(mode) or mode & 0o100 else 0o644
            if path.is_symlink():
                entry.type, entry.linkname = tarfile.SYMTYPE, str(path.readlink())
                tar.addfile(entry)
            elif path.is_dir():
                entry.type = tarfile.DIRTYPE
                tar.addfile(entry)
            else:
                entry.size = path.stat().st_size
                with path.open("rb") as content:
                    tar.addfile(entry, content)


def digest(path: Path, algorithm: str) -> str:
    total = hashlib.new(algorithm)
    with path.open("rb") as content:
        while part := content.read(1 << 20):
            total.update(part)
    return total.hexdigest()


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def write_sums(folder: Path) -> Path:
    """SHA256SUMS of all files, as `sha256sum --check` reads it."""
    sums = folder / "SHA256SUMS"
    lines = [
        f"{digest(path, 'sha256')}  {path.relative_to(folder).as_posix()}\n"
        for path in files_below(folder)
        if path != sums
    ]
    sums.write_text("".join(lines))
    return sums
