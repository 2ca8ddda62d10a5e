"""The programs `faro` of a build: their names, and what they are made of."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import licences
import sbom

ARCHITECTURES = ("x86_64", "aarch64")
# Of man pages and completions for shells.
PAGES = "pages"


def put(folder: Path, programs: dict[str, Path]) -> list[Path]:
    """Copies the programs (by architecture) as faro-ARCHITECTURE, with their bill of materials, the
    licences of what is linked in, man pages and completions; none of an older build stays."""
    for arch in ARCHITECTURES:
        (folder / f"faro-{arch}").unlink(missing_ok=True)
    for arch, program in programs.items():
        shutil.copyfile(program, folder / f"faro-{arch}")
        (folder / f"faro-{arch}").chmod(0o755)
    (folder / "faro.cdx.json").write_text(sbom.of_commands(programs))
    if own := programs.get(platform.machine()):
        shutil.rmtree(folder / PAGES, ignore_errors=True)
        (folder / PAGES).mkdir()
        subprocess.run([own, "pages", folder / PAGES], check=True)
    texts = licences.of_files("the command faro", sbom.COMMAND, programs)
    (folder / licences.BESIDE).write_text(texts)
    return [folder / f"faro-{arch}" for arch in programs]
