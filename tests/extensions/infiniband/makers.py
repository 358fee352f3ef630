"""What several test modules of this folder and of others use."""

from __future__ import annotations

import re
from pathlib import Path

from compilers.tables.build import Build
from compilers.targets.target_lookup import target


def rendered(build: Build, out: Path, **options: str) -> Build:
    given = {"guids": "made-up", "folder": str(out)} | options
    target("opensm").render(build, out, options=given)
    return build


def service_levels(policy: Path) -> dict[tuple[int, int], int]:
    """The level of each pair of port GUIDs that a rule names, read by OpenSM's grammar."""
    text = policy.read_text()
    groups = {
        name.strip(): [int(guid, 16) for guid in re.findall(r"0x[0-9a-f]{16}", body)]
        for name, body in re.findall(r"name: (.+)\n((?:\s+port-guid: .*\n)+)", text)
    }
    levels = dict(re.findall(r"name: (\S+)\n\s+sl: (\d+)", text))
    rules = re.findall(r"source: (.+)\n\s+destination: (.+)\n\s+qos-level-name: (\S+)\n", text)
    found: dict[tuple[int, int], int] = {}
    for source, destination, level in rules:
        for s in groups[source]:
            for d in groups[destination]:
                found.setdefault((s, d), int(levels[level]))
    return found
