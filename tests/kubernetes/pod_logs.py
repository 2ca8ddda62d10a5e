"""What the containers of pods wrote, also of pods that are gone: the kubelets' log files get a
second name here as soon as they are seen."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections import defaultdict
from pathlib import Path

LOOK = 0.1  # seconds
# Of the container runtime interface: time, stream, whether the line goes on, text.
LINE = re.compile(r"^\S+ (?:stdout|stderr) ([FP]) (.*)$")


def text_of(log):
    parts = []
    for line in log.read_text(errors="replace").splitlines():
        found = LINE.match(line)
        if found:
            parts.append(found[2] + ("\n" if found[1] == "F" else ""))
    return "".join(parts)


class PodLogs:
    """`nodes`: the directory of the nodes'; `kept`: a directory of the same file system."""

    def __init__(self, nodes, kept):
        self.nodes, self.kept = nodes, kept
        self.kept.mkdir(parents=True, exist_ok=True)
        self._ends = threading.Event()
        self._watch = threading.Thread(target=self._look_on, daemon=True)
        self._watch.start()

    def _look_on(self):
        while not self._ends.wait(LOOK):
            self._look()

    def _look(self):
        # Pods that go meanwhile take their directories along; walking passes over those.
        for node in self.nodes.glob("*/pod-logs"):
            for directory, _, names in os.walk(node):
                self._keep(Path(directory) / name for name in names if name.endswith(".log"))

    def _keep(self, logs):
        for log in logs:
            namespace, pod, uid = log.parts[-3].split("_")
            name = f"{namespace}_{pod}_{uid[:8]}_{log.parts[-2]}_{log.name}"
            with contextlib.suppress(OSError):
                os.link(log, self.kept / name)

    def of(self, namespace):
        """Texts of the containers of a namespace's pods, by pod."""
        self._look()
        found = defaultdict(str)
        for log in sorted(self.kept.glob(f"{namespace}_*.log")):
            found[log.name.split("_")[1]] += text_of(log)
        return dict(found)

    def close(self):
        self._ends.set()
        self._watch.join()
