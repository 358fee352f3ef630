"""Builds with one value changed on disk, digests and all, and whether verification sees it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from compilers.pipeline import compile_fabric
from compilers.proof.verification import judge
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load, save
from compilers.tables.folders.folder_contents import manifest_sum
from inventory.problems import InputError
from tests.compilers.proof.soundness.outside import Outside, objections

BOTH = {"balance": "compact-valiant", "protect": "link"}
IQ = {"supernode": "inductive-quad", "degree": 3}
BLOCKS = [
    {"name": "a{}", "count": 4, "role": "fabric"},
    {"name": "h{}", "count": 2, "role": "host"},
]
RACKS: dict[str, Any] = {
    "node_types": {"leaf": {"ports": BLOCKS}, "other": {"ports": [*BLOCKS, {"count": 1}]}},
    "nodes": [{"name": f"n{v}", "type": "leaf" if v % 2 else "other"} for v in range(13)],
    "dead_links": [{"a": "n0", "b": "n1"}],
}
FABRICS: dict[str, dict[str, Any]] = {
    "polarfly": {"topology": {"family": "polarfly", "q": 3}, "routing": BOTH, "hosts_per_node": 2},
    "shares": {
        "topology": {"family": "polarfly", "q": 3},
        "routing": {"balance": "compact-valiant", "minimal_share": "2/3", "disjoint": "none"},
    },
    "minimal": {
        "topology": {"family": "polarfly", "q": 4},
        "addressing": {"ipv4": "10.0.0.0/25", "ipv6": "fd00::/56"},
    },
    "damaged": {
        "topology": {"family": "polarfly", "q": 3},
        "routing": BOTH,
        "hosts_per_node": 2,
        "inventory": RACKS,
    },
    "oft": {"topology": {"family": "oft", "q": 2}, "routing": {"protect": "link"}},
    "polarstar": {"topology": {"family": "polarstar", "q": 2, **IQ}},
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit of a build."""

    fabric: str
    """A key of `FABRICS`."""
    edit: str
    """The value that was changed, before and after."""
    survived: bool
    """Whether verification passed it."""
    harm: str
    """What the outside walker objects to, "" for nothing."""


class Nursery:
    """Good builds in a folder, and mutants of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, keys in FABRICS.items():
            save(compile_fabric(load_fabric({"name": name, **keys})), folder / name)
        self.good = {name: Outside(folder / name) for name in FABRICS}

    def objects(self) -> list[str]:
        """The good builds to which the outside walker objects."""
        return [n for n, good in self.good.items() if any(objections(self.folder / n, good))]

    def mutants(self, seed: int, count: int) -> Iterator[Mutant]:
        """So many mutants, one fabric after the other."""
        random = Random(seed)  # noqa: S311
        for number in range(count):
            name = list(FABRICS)[number % len(FABRICS)]
            place = self.folder / "mutant"
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(self.folder / name, place)
            edit = _edit(place, random)
            if edit:
                survived = _passes(place)
                harm = next(objections(place, self.good[name]), "")
                yield Mutant(name, edit, survived, harm)


def _edit(folder: Path, random: Random) -> str:
    """Change one value of a build and its digest; returns what was done, "" where nothing was."""
    arrays = sorted((folder / "arrays").glob("*.npy"))
    file = random.choice([*arrays, *arrays, folder / "fabric.json"])
    edit = _edit_json(file, random) if file.suffix == ".json" else _edit_array(file, random)
    manifest = json.loads((folder / "manifest.json").read_text())
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    manifest["files"][str(file.relative_to(folder))] = digest
    text = json.dumps(manifest, indent=1)
    (folder / "manifest.json").write_text(text)
    (folder / "manifest.sha256").write_text(manifest_sum(text))
    return edit


def _edit_array(file: Path, random: Random) -> str:
    array = np.load(file)
    if not array.size:
        return ""
    place = tuple(random.randrange(length) for length in array.shape)
    old = int(array[place])
    like = int(array.ravel()[random.randrange(array.size)])
    info = np.iinfo(array.dtype) if array.dtype != bool else None
    values = [like, like, like, old + 1, old - 1, 0, old ^ 1 << random.randrange(8)]
    fits = [
        v for v in values if v != old and (v in (0, 1) if not info else info.min <= v <= info.max)
    ]
    if not fits:
        return ""
    array[place] = new = random.choice(fits)
    np.save(file, array)
    return f"{file.stem}{list(place)}: {old} -> {new}"


def _edit_json(file: Path, random: Random) -> str:
    value = json.loads(file.read_text())
    sections = [word for word in value if isinstance(value[word], dict) and value[word]]
    section = random.choice(sections)
    leaves = list(_leaves(value[section], (section,)))
    path, old = random.choice(leaves)
    alike = [leaf for _, leaf in leaves if type(leaf) is type(old) and leaf != old]
    new = random.choice([*alike, old + 1 if isinstance(old, int) else f"{old}0"])
    at = value
    for word in path[:-1]:
        at = at[word]
    at[path[-1]] = new
    file.write_text(json.dumps(value, indent=1))
    return f"{'.'.join(map(str, path))}: {old!r} -> {new!r}"


def _leaves(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Text and numbers of plain data, with their paths."""
    if isinstance(value, str | int):
        yield path, value
    items: Any = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for word, inner in items:
        yield from _leaves(inner, (*path, word))


def _passes(folder: Path) -> bool:
    try:
        return judge([load(folder)]).passed
    except InputError:
        return False
