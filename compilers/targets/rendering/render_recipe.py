"""What rendered files follow from, as a digest: the same recipe makes the same files."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Collection, Mapping
from pathlib import Path

from compilers.tables.build import Build
from compilers.targets.target import Target
from compilers.workers.source_digest import ROOMS, SOURCES, folder_digest, source_digest


def recipe_of(
    build: Build,
    target: Target,
    chosen: Mapping[str, str],
    templates: Path | None,
    accept: Collection[str],
) -> str:
    """The digest of the build, the options, the templates and our own sources; "" where unknown.

    What a target of another package follows from nobody knows.
    """
    if not Path(inspect.getfile(type(target))).is_relative_to(SOURCES / ROOMS[0]):
        return ""
    own = folder_digest(templates) if templates else ""
    options = sorted(chosen.items())
    parts = [build.identity, target.name, options, own, source_digest(), sorted(accept)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
