"""What one would publish of a release, where and in which order: the commands, and what keeps them
from running now. Nothing is published here."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from artifacts import ROOT, Project, Wrong, files_below


class Step(NamedTuple):
    name: str
    # Names where to: the publisher sets it.
    variable: str
    # Beside those of the shell.
    programs: tuple[str, ...]
    # Of files in the release; {files} of the command are these.
    patterns: tuple[str, ...]
    commands: tuple[str, ...]


UPLOAD = "  curl --fail --upload-file $file"
# What can be taken back comes first. A version of the last two is for ever.
STEPS = (
    Step(
        "tag",
        "FARO_GIT_REMOTE",
        ("git", "gpg"),
        (),
        ("git tag --sign v{version} --message {version}", "git push $FARO_GIT_REMOTE v{version}"),
    ),
    Step(
        "images",
        "FARO_IMAGES",
        ("skopeo",),
        ("images/*.tar",),
        (
            "for file in {files}; do name=${{file#images/}}; name=${{name%%-{version}-*}}",
            "  skopeo copy oci-archive:$file docker://$FARO_IMAGES/$name:{version}; done",
        ),
    ),
    Step(
        "chart",
        "FARO_CHARTS",
        ("helm",),
        ("faro-serve-*.tgz",),
        ("helm push {files} oci://$FARO_CHARTS",),
    ),
    Step(
        "files",
        "FARO_FILES",
        ("curl",),
        ("*.zip", "faro-x86_64", "faro-aarch64", "*.debug", "faro.*", "pages/*", "SHA256SUMS"),
        ("for file in {files}; do", f"{UPLOAD} $FARO_FILES/v{{version}}/$file; done"),
    ),
    Step(
        "wheel",
        "FARO_PYPI",
        ("twine",),
        ("*.whl",),
        ("twine upload --repository-url $FARO_PYPI {files}",),
    ),
    Step(
        "maven",
        "FARO_MAVEN",
        ("curl", "gpg"),
        ("maven/**/*.*",),
        (
            "for file in $(find maven -name '*.jar' -o -name '*.json' -o -name '*.pom'); do",
            "  gpg --detach-sign --armor $file; done",
            "for file in $(find maven -type f); do",
            f"{UPLOAD} $FARO_MAVEN/${{{{file#maven/}}}}; done",
        ),
    ),
)


def files_of(step: Step, release: Path) -> list[str]:
    found = {path for pattern in step.patterns for path in release.glob(pattern) if path.is_file()}
    return sorted(path.relative_to(release).as_posix() for path in found)


def missing(step: Step, project: Project) -> list[str]:
    """What keeps the step from being done here and now."""
    found = [] if os.environ.get(step.variable) else [f"{step.variable} is not set"]
    found += [f"there is no {program}" for program in step.programs if not shutil.which(program)]
    if step.name == "tag":
        tag = ["git", "rev-parse", "--verify", "--quiet", f"refs/tags/v{project.version}"]
        asked = subprocess.run(tag, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        found += [f"v{project.version} is there already"] if asked.returncode == 0 else []
    return found


def dry_run(release: Path, project: Project) -> str:
    """The sums of all files are checked, and each file has one place."""
    sums = ["sha256sum", "--check", "--quiet", "SHA256SUMS"]
    if subprocess.run(sums, cwd=release, check=False).returncode:
        raise Wrong(f"{release}/SHA256SUMS does not agree with the files")
    placed = [name for step in STEPS for name in files_of(step, release)]
    names = [path.relative_to(release).as_posix() for path in files_below(release)]
    if sorted(placed) != sorted(names):
        odd = sorted({*placed} ^ {*names}) or sorted({n for n in placed if placed.count(n) > 1})
        raise Wrong(f"no step, or more than one, publishes {', '.join(odd)}")
    lines = ["to publish, in this order (nothing is published now):"]
    for number, step in enumerate(STEPS, 1):
        files = files_of(step, release)
        about = "; ".join(missing(step, project)) or "ready"
        count = f", {len(files)} of the files" if files else ""
        lines.append(f"  {number}. {step.name}{count}: {about}")
        words = {"version": project.version, "files": shlex.join(files)}
        lines += [f"       {command.format(**words)}" for command in step.commands]
    return "\n".join(lines)
