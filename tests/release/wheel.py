"""The wheel `faro-spark`: the package `faro` with the jar in it.

Written here and not by a build tool: it is an archive of a few files, and a function of them.
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

from artifacts import ROOT, Project, archive

NAME = "faro_spark"
PACKAGE = ROOT / "python" / "faro"
# Java's class files and the libraries of all architectures are in the jar.
TAG = "py3-none-any"
# The licences of what is linked into the jar's libraries (tests/setup/licences.py).
LICENCES = "META-INF/THIRD-PARTY.txt"
METADATA = """\
Metadata-Version: 2.1
Name: faro-spark
Version: {version}
Summary: {summary}
Home-page: {url}
License: Apache-2.0
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Requires-Python: >=3.8
Description-Content-Type: text/plain

{description}
"""


def entries(project: Project, jar: Path) -> dict[str, bytes]:
    """The files of the wheel, without RECORD."""
    sources = {path.name: path.read_bytes() for path in sorted(PACKAGE.glob("*.py"))}
    documentation = sources["__init__.py"].decode().split('"""')[1]
    metadata = METADATA.format(
        version=project.version,
        summary=project.description,
        url=project.url,
        description=documentation.strip(),
    )
    info = f"{NAME}-{project.version}.dist-info"
    with zipfile.ZipFile(jar) as opened:
        licences = opened.read(LICENCES)
    return {
        **{f"faro/{name}": content for name, content in sources.items()},
        "faro/faro-spark.jar": jar.read_bytes(),
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: faro ({project.version})\n"
            f"Root-Is-Purelib: true\nTag: {TAG}\n"
        ).encode(),
        f"{info}/LICENSE": (ROOT / "LICENSE").read_bytes(),
        f"{info}/THIRD-PARTY.txt": licences,
    }


def record_line(name: str, content: bytes) -> str:
    sum_of = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={sum_of},{len(content)}\n"


def write_wheel(folder: Path, project: Project, jar: Path) -> Path:
    files = entries(project, jar)
    record = f"{NAME}-{project.version}.dist-info/RECORD"
    lines = [record_line(name, content) for name, content in sorted(files.items())]
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    path = folder / f"{NAME}-{project.version}-{TAG}.whl"
    archive(path, files)
    return path
