"""Folders of fabrics with several planes: `planes.json`, and one build a plane in `plane-1`, ….

Each of these is a complete build. Arrays that planes share are hard links to one file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compilers.tables.build import Build
from compilers.tables.build_folder import FABRIC, MANIFEST, PLANES, load, put, write
from inventory.problems import InputError, Problem

OWN = ("arrays/datapath_id.npy", "arrays/host_mac.npy", "arrays/hardware_", "fabric.json")


def save_planes(builds: Sequence[Build], folder: Path) -> tuple[Build, ...]:
    """Write the builds to a temporary folder and rename that to `folder`; returns them read back.

    Raises:
        InputError: the folder exists and is no build, or cannot be written.
    """

    def fill(partial: Path) -> dict[str, str]:
        partial.mkdir(parents=True)
        identities = {}
        for plane, build in enumerate(builds, 1):
            like = (builds[0], partial / _name(1)) if plane > 1 else None
            identities[_name(plane)] = write(build, partial / _name(plane), like)
        (partial / PLANES).write_text(json.dumps({"planes": identities}, indent=1))
        return identities

    identities = put(folder, fill)
    folder = folder.resolve()
    return tuple(load(folder / name, expect=identity) for name, identity in identities.items())


def _name(plane: int) -> str:
    return f"plane-{plane}"


def builds_in(folder: Path) -> tuple[Path, ...]:
    """The folder of each plane in order; of a single build, the folder itself.

    Raises:
        InputError: `planes.json` is damaged.
    """
    try:
        names = json.loads((folder / PLANES).read_text())["planes"]
        return tuple(folder / str(name) for name in names)
    except FileNotFoundError:
        return (folder,)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            Problem(
                file=str(folder / PLANES),
                required="the list of a fabric's planes",
                given=f"a damaged file ({error})",
                todo="compile the fabric again",
            )
        ) from error


def alike(one: Path, other: Path) -> bool:
    """Whether two builds forward alike: the same tables, ports and graph, by their digests."""
    return _forwarding_digests(one) == _forwarding_digests(other)


def _forwarding_digests(folder: Path) -> dict[str, Any]:
    files: dict[str, str] = json.loads((folder / MANIFEST).read_text())["files"]
    routing = json.loads((folder / FABRIC).read_text())["routing"]
    digests = {name: digest for name, digest in files.items() if not name.startswith(OWN)}
    return {**digests, "routing": routing}
