"""The manifests of docs/deployment as an archive: a base for kustomize, and pod templates."""

from __future__ import annotations

from pathlib import Path

from artifacts import ROOT, Project, Wrong, archive

SOURCE = ROOT / "docs" / "deployment" / "kubernetes"
# What an overlay replaces.
IMAGE = "REGISTRY/spark-faro"


def write_manifests(folder: Path, project: Project) -> Path:
    """faro-kubernetes-VERSION.zip, with one folder `kubernetes`."""
    files = {path.name: path.read_bytes() for path in sorted(SOURCE.glob("*.yaml"))}
    image = f"{IMAGE}:{project.version}"
    for name, text in files.items():
        for line in text.decode().splitlines():
            if line.strip().startswith("image:") and line.split()[-1] != image:
                raise Wrong(f"{name}: '{line.strip()}' is not {image}")
    target = folder / f"faro-kubernetes-{project.version}.zip"
    folder.mkdir(parents=True, exist_ok=True)
    archive(target, {f"kubernetes/{name}": text for name, text in files.items()})
    return target
