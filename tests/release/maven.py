"""The Maven artifacts: the plug-in's jar with sources, javadoc and a POM without dependencies, laid
out as a repository."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from artifacts import POM, ROOT, Project, archive, digest, files_below

# The modules whose classes are in the jar.
MODULES = ("jvm", "shuffle-plugin")
MANIFEST = "META-INF/MANIFEST.MF"
# Maven asks for the first two; the others are those that Maven Central takes besides.
SUMS = ("md5", "sha1", "sha256", "sha512")


def pom(project: Project) -> str:
    """Without a parent and without dependencies: Spark brings what the jar is compiled against."""
    root = ET.Element("project")
    for name, value in {
        "modelVersion": "4.0.0",
        "groupId": project.group,
        "artifactId": project.artifact,
        "version": project.version,
        "packaging": "jar",
        "name": project.name,
        "description": project.description,
        "url": project.url,
    }.items():
        ET.SubElement(root, name).text = value
    for element in project.parts.values():
        root.append(without_namespace(element))
    root.set("xmlns", POM.strip("{}"))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def without_namespace(element: ET.Element) -> ET.Element:
    copy = ET.Element(element.tag.replace(POM, ""))
    copy.text = element.text
    copy.extend(without_namespace(child) for child in element if isinstance(child.tag, str))
    return copy


def sources(root: Path = ROOT) -> dict[str, bytes]:
    """The Java sources and resources that the jar's classes are made of."""
    entries = {}
    for module in MODULES:
        for kind in ("java", "resources"):
            folder = root / module / "src" / "main" / kind
            for path in files_below(folder):
                name = path.relative_to(folder).as_posix()
                if name in entries:
                    raise ValueError(f"{name} is in more than one of {', '.join(MODULES)}")
                entries[name] = path.read_bytes()
    return entries


def folder_entries(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files_below(folder)}


def write_repository(folder: Path, project: Project, jar: Path, bill: Path, javadoc: Path) -> Path:
    """Writes the artifacts of a version; returns the folder that they are in."""
    place = folder.joinpath(*project.group.split("."), project.artifact, project.version)
    place.mkdir(parents=True)
    stem = f"{project.artifact}-{project.version}"
    (place / f"{stem}.pom").write_text(pom(project))
    (place / f"{stem}.jar").write_bytes(jar.read_bytes())
    # The classifier under which CycloneDX's own plug-in publishes.
    (place / f"{stem}-cyclonedx.json").write_bytes(bill.read_bytes())
    for classifier, entries in (("sources", sources()), ("javadoc", folder_entries(javadoc))):
        manifest = {MANIFEST: b"Manifest-Version: 1.0\r\n\r\n"}
        archive(place / f"{stem}-{classifier}.jar", {**entries, **manifest}, (MANIFEST,))
    for path in files_below(place):
        for algorithm in SUMS:
            path.with_name(f"{path.name}.{algorithm}").write_text(digest(path, algorithm))
    return place
