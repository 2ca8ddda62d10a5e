"""The manifests of docs/deployment as an archive, and the chart of docker/ as Helm takes it."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from artifacts import EPOCH, ROOT, Project, Wrong, archive, files_below, write_tar

SOURCE = ROOT / "docs" / "deployment" / "kubernetes"
CHART = ROOT / "docker" / "faro-serve"


def write_manifests(folder: Path, project: Project) -> Path:
    """faro-kubernetes-VERSION.zip, with one folder `kubernetes`."""
    target = folder / f"faro-kubernetes-{project.version}.zip"
    folder.mkdir(parents=True, exist_ok=True)
    archive(target, {f"kubernetes/{p.name}": p.read_bytes() for p in SOURCE.glob("*.yaml")})
    return target


def write_chart(folder: Path, project: Project) -> Path:
    """faro-serve-VERSION.tgz; `helm package` would write into it when it ran."""
    stated = re.findall(
        r'^(?:app)?[vV]ersion: "?([\w.-]+)', (CHART / "Chart.yaml").read_text(), re.M
    )
    if stated != [project.version] * 2:
        raise Wrong(f"pom.xml says version {project.version}, {CHART.name}/Chart.yaml {stated}")
    target = folder / f"{CHART.name}-{project.version}.tgz"
    folder.mkdir(parents=True, exist_ok=True)
    entries = {f"{CHART.name}/{p.relative_to(CHART).as_posix()}": p for p in files_below(CHART)}
    with target.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=EPOCH) as out:
        write_tar(out, entries)
    return target
