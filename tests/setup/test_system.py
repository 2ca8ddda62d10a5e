"""What tests/setup/system says where cargo is missing, by what the release's packages have."""

import os
import subprocess
from pathlib import Path

SYSTEM = Path(__file__).parent / "system"


def says(place, candidates):
    """Its standard error for a user, on a machine whose apt has those versions, and no cargo."""
    fakes = {
        "cargo": "exit 127",
        "apt-get": "exit 0",
        "id": "echo 1000",
        "apt-cache": 'case "$2" in\n'
        + "".join(f'{name}) echo "  Candidate: {has}" ;;\n' for name, has in candidates.items())
        + "esac",
    }
    for name, body in fakes.items():
        file = place / name
        file.write_text(f"#!/bin/bash\n{body}\n")
        file.chmod(0o755)
    environment = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}", "HOME": str(place)}
    done = subprocess.run(
        [SYSTEM, "build"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done
    return done.stdout + done.stderr


def test_debian_12_knows_of_a_rustup_that_it_does_not_have(tmp_path):
    text = says(tmp_path, {"rustup": "(none)", "rustc": "1.63.0+dfsg1-2"})
    assert "install it with rustup (see https://rustup.rs)" in text
    assert "install -y rustup" not in text


def test_a_release_with_rustup_or_a_new_rustc_installs_it(tmp_path):
    assert (
        "rustup" in says(tmp_path, {"rustup": "1.26.0", "rustc": "1.63.0"}).split("install -y")[1]
    )
    assert "cargo rustc" in says(tmp_path, {"rustup": "(none)", "rustc": "1.85.0+dfsg3"})
