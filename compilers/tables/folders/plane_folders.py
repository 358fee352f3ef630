"""Folders of fabrics with several planes: `planes.json`, and one build per plane in `plane-1`, ….

Each of these is a complete build. Arrays that planes share are hard links to one file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compilers.tables.build import Build
from compilers.tables.folders.artefact import link_files
from compilers.tables.folders.build_folder import AGAIN, Prove, load, save, write
from compilers.tables.folders.folder_files import read
from compilers.tables.folders.generations import (
    FABRIC,
    MANIFEST,
    PLANES,
    build_files,
    collect,
    is_build,
    last,
    put,
)
from inventory.problems import InputError

OWN = ("arrays/datapath_id.npy", "arrays/host_mac.npy", "arrays/hardware_", "fabric.json")


def save_planes(
    builds: Sequence[Build], folder: Path, prove: Prove | None = None
) -> tuple[Build, ...]:
    """Write the builds next to `folder`, then put them in its place; returns them read back.

    Of one build the folder is the build's own.

    Args:
        builds: one a plane.
        folder: their place.
        prove: called before the folder that was written takes its place.

    Raises:
        InputError: the folder exists and is no build, or cannot be written.
    """
    if len(builds) == 1:
        return (save(builds[0], folder, prove),)

    def fill(partial: Path) -> tuple[Build, ...]:
        identities = {}
        for plane, build in enumerate(builds, 1):
            like = (builds[0], partial / _name(1)) if plane > 1 else None
            identities[_name(plane)] = write(build, partial / _name(plane), like)
        (partial / PLANES).write_text(json.dumps({"planes": identities}, indent=1))
        written = load_planes(partial)
        if prove:
            prove(partial, written)
        return written

    return put(folder, fill)


def _name(plane: int) -> str:
    return f"plane-{plane}"


def builds_in(folder: Path) -> tuple[Path, ...]:
    """The folder of each plane in order; of a single build, the folder itself.

    Raises:
        InputError: `planes.json` is damaged.
    """
    return tuple(_identities(folder))


def load_planes(folder: Path) -> tuple[Build, ...]:
    """The build of each plane; of a folder of one build, that one.

    Raises:
        InputError: there is none, it is damaged, or a plane is of another build.
    """
    return tuple(load(path, expect=identity) for path, identity in _identities(folder).items())


def _identities(folder: Path) -> dict[Path, str]:
    """The identities of the planes by their folders; "" for the folder of one build."""
    try:
        planes = json.loads(read(folder, PLANES))["planes"]
        if list(planes) != [_name(plane) for plane in range(1, len(planes) + 1)] or not planes:
            raise ValueError(", ".join(map(str, planes)))
        return {folder / name: str(identity) for name, identity in planes.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {folder: ""}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError.of(
            file=str(folder / PLANES),
            required="the list of a fabric's planes",
            given=f"a damaged file ({error})",
            todo=AGAIN,
        ) from error


def rollback(folder: Path) -> tuple[Build, ...]:
    """Put the last proved build back; the one that was in its place is then kept.

    Returns:
        The build of each plane that is in the place now.

    Raises:
        InputError: none is kept, it is damaged, or it cannot be put back.
    """
    place = folder.resolve()
    collect(place, inside=False)
    if not is_build(kept := last(place)):
        todo = "one is kept when another takes its place"
        raise InputError.of("an earlier build that was proved", "none is kept", todo, str(folder))
    builds = load_planes(kept)
    put(place, lambda new: link_files(kept, new, build_files(kept)), back=True)
    return builds


def alike(one: Path, other: Path) -> bool:
    """Whether two builds forward alike: the same tables, ports and graph, by their digests."""
    return _forwarding_digests(one) == _forwarding_digests(other)


def first_alike(builds: Sequence[Build], folders: Sequence[Path], plane: int) -> int | None:
    """The first plane before this one that forwards alike, None where none does.

    By digests in folders; without folders by tables that are shared in memory.
    """
    for before in range(plane):
        if folders and alike(folders[before], folders[plane]):
            return before
        if not folders and builds[before].tables is builds[plane].tables:
            return before
    return None


def _forwarding_digests(folder: Path) -> dict[str, Any]:
    files: dict[str, str] = json.loads((folder / MANIFEST).read_text())["files"]
    routing = json.loads((folder / FABRIC).read_text())["routing"]
    digests = {name: digest for name, digest in files.items() if not name.startswith(OWN)}
    return {**digests, "routing": routing}
