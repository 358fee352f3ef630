"""A build: everything that was compiled from a spec and an inventory, and its folder on disk.

The folder holds `manifest.json` (what it was made from, a digest of every file), `fabric.json`
(names, addresses, policy), `arrays/*.npy` (memory-mapped when read) and, once `verify` has passed
on it, `verified.json`. The build's identity is the digest of the manifest: the same inputs give the
same bytes and so the same identity, on every machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.tables.intermediate_form import Classes, Routes, Tables
from compilers.topology.graph import Graph
from compilers.topology.labelled_graph import Topology
from compilers.wiring.addressing import Addressing
from compilers.wiring.hardware import Hardware, dump, restore
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError, Problem

FORMAT = 1
TABLED = ("balance", "protect")
A_ROW_A_SWITCH = (
    *("kind", "coordinates", "endpoints", "datapath_id", "port", "far", "far_port", "host_port"),
    *("node_type", "host_mac", "route_egress", "class_port", "class_alternate", "class_weight"),
    *("class_protection", "class_bounce"),
)
MANIFEST, FABRIC, VERIFIED = "manifest.json", "fabric.json", "verified.json"
PLANES = "planes.json"  # in a folder of builds, one a plane (`compilers.tables.plane_folders`)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Build:
    """A compiled fabric.

    identity is 16 hexadecimal digits that name everything emitted, "" before it is saved; inputs
    are the SHA-256 digests of the files it was made from, by their role; hardware is None where no
    inventory was given; policy is what else the spec says about routing, for those who change it at
    run time.
    """

    name: str
    balance: str
    protect: str
    inputs: Mapping[str, str]
    topology: Topology
    wiring: Wiring
    addressing: Addressing
    tables: Tables
    hardware: Hardware | None = None
    identity: str = ""
    policy: Mapping[str, str] = field(default_factory=dict)


def _arrays(build: Build) -> dict[str, NDArray[Any]]:
    t, w, routes, classes = build.topology, build.wiring, build.tables.routes, build.tables.classes
    kept = dump(build.hardware)[0] if build.hardware else {}
    return kept | {
        "graph_offsets": t.graph.offsets,
        "graph_targets": t.graph.targets,
        "kind": t.kind,
        "coordinates": t.coordinates,
        "endpoints": t.endpoints,
        "datapath_id": w.datapath_id,
        "port": w.port,
        "far": w.far,
        "far_port": w.far_port,
        "host_port": w.host_port,
        "node_type": w.node_type,
        "host_mac": build.addressing.host_mac,
        "route_prefix": routes.prefix,
        "route_egress": routes.egress,
        "route_aggregate": routes.aggregate,
        "class_port": classes.port,
        "class_alternate": classes.alternate,
        "class_weight": classes.weight,
        "class_protection": classes.protection,
        "class_bounce": classes.bounce,
    }


def _fabric(build: Build) -> dict[str, Any]:
    t, w, a = build.topology, build.wiring, build.addressing
    return {
        "name": build.name,
        "topology": {
            "family": t.family,
            "parameters": dict(t.parameters),
            "kinds": t.kinds,
            "diameter": t.diameter,
            "hierarchy": t.hierarchy,
        },
        "routing": {"balance": build.balance, "protect": build.protect, **build.policy},
        "addressing": {
            "ipv4": str(a.ipv4),
            "ipv4_length": a.ipv4_length,
            "ipv6": str(a.ipv6) if a.ipv6 else None,
            "gateway_mac": a.gateway_mac,
        },
        "nodes": {"names": w.names, "management": w.management, "hosts": w.host_names},
        "node_types": {"names": w.type_names, "ports": w.port_names},
        "hardware": dump(build.hardware)[1] if build.hardware else None,
    }


def save(build: Build, folder: Path) -> Build:
    """Write the build beside `folder`, then put it in its place; returns it with its identity.

    Raises:
        InputError: the folder exists and is not a build, or cannot be written.
    """
    identity = put(folder, lambda beside: write(build, beside))
    return load(folder.resolve(), expect=identity)


def put(folder: Path, fill: Callable[[Path], T]) -> T:
    """Have `fill` write a folder beside `folder`, then put it in its place.

    Raises:
        InputError: the folder exists and is not a build, or cannot be written.
    """
    folder = folder.resolve()  # a link stays one; `.` has no name to write beside
    ours = any((folder / name).is_file() for name in (MANIFEST, PLANES))
    if folder.exists() and not ours and _occupied(folder):
        raise InputError(
            Problem(
                file=str(folder),
                required="a new folder, or an earlier build to replace",
                given="a folder or file with something else in it",
                todo="name another folder with -o",
            )
        )
    beside = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        result = fill(beside)
        _replace(beside, folder)
    except OSError as error:
        raise InputError(
            Problem(
                file=str(folder),
                required="a folder that can be written",
                given=error.strerror or f"no room ({error})",
                todo="choose another folder with -o, or make room",
            )
        ) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return result


def _occupied(folder: Path) -> bool:
    return not folder.is_dir() or any(folder.iterdir())


def write(build: Build, folder: Path, like: tuple[Build, Path] | None = None) -> str:
    """Write the files of a build into a new folder; returns its identity.

    Arrays that `like`, a build and its folder, has too become links to the files there.
    """
    others = {id(array): name for name, array in _arrays(like[0]).items()} if like else {}
    (folder / "arrays").mkdir(parents=True)
    files = {FABRIC: json.dumps(_fabric(build), indent=1).encode()}
    (folder / FABRIC).write_bytes(files[FABRIC])
    digests = {FABRIC: hashlib.sha256(files[FABRIC]).hexdigest()}
    for name, array in _arrays(build).items():
        path = folder / "arrays" / f"{name}.npy"
        if like and id(array) in others:
            _link(like[1] / "arrays" / f"{others[id(array)]}.npy", path)
        else:
            np.save(path, array, allow_pickle=False)
        digests[f"arrays/{name}.npy"] = _digest(path)
    manifest = {
        "format": FORMAT,
        "name": build.name,
        "topology": build.topology.title(),
        "switches": build.tables.switches,
        "links": build.topology.graph.size,
        "inputs": dict(build.inputs),
        "files": digests,
    }
    text = json.dumps(manifest, indent=1)
    (folder / MANIFEST).write_text(text)
    return _identity(text)


def _link(there: Path, here: Path) -> None:
    """One file under two names; a copy where the file system has no such thing."""
    try:
        here.hardlink_to(there)
    except OSError:
        shutil.copyfile(there, here)


def _identity(manifest: str) -> str:
    return hashlib.sha256(manifest.encode()).hexdigest()[:16]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _replace(beside: Path, folder: Path) -> None:
    """Put `beside` in the place of `folder`: two renames, the old build removed last."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    if folder.exists():
        folder.rename(old)
    beside.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def load(folder: Path, expect: str = "") -> Build:
    """Read a build folder; the arrays are memory-mapped.

    Raises:
        InputError: not a build, of another format, or damaged.
    """
    try:
        text = (folder / MANIFEST).read_text()
        manifest = json.loads(text)
        if manifest["format"] != FORMAT:
            raise _unreadable(folder, "a build of another format")
        if not isinstance(manifest["files"], dict):
            raise TypeError("files")
        fabric = json.loads((folder / FABRIC).read_text())
        arrays = {
            path.stem: np.load(path, mmap_mode="r", allow_pickle=False)
            for path in (folder / "arrays").glob("*.npy")
        }
        if misfit := _misfit(arrays):
            raise ValueError(misfit)
        build = _assemble(fabric, arrays, manifest["inputs"], _identity(text))
    except FileNotFoundError as error:
        if (folder / PLANES).is_file():
            raise _several_planes(folder) from None
        raise _unreadable(folder, f"no {Path(error.filename).name} in it") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unreadable(folder, f"a damaged one ({error})") from error
    if expect and build.identity != expect:
        raise _unreadable(folder, "one that changed while it was written")
    return build


def _misfit(arrays: Mapping[str, NDArray[Any]]) -> str:
    """The name of an array that has no row a switch, or names switches there are not; else ""."""
    order = len(arrays["graph_offsets"]) - 1
    for name in A_ROW_A_SWITCH:
        if len(arrays[name]) != order:
            return name
    for name, least in (("graph_targets", 0), ("far", -1)):
        numbers = arrays[name]
        if numbers.size and not least <= numbers.min() <= numbers.max() < order:
            return name
    return ""


def _unreadable(folder: Path, given: str) -> InputError:
    return InputError(
        Problem(
            file=str(folder),
            required="a build folder of this version of polarfab",
            given=given,
            todo="make one with: polarfab compile fabric.yaml -o DIR",
        )
    )


def _several_planes(folder: Path) -> InputError:
    todo = f"name one of them, such as {folder / 'plane-1'}"
    given = "a folder of several planes"
    return InputError(Problem("the build of one plane", given, todo, str(folder)))


def _assemble(
    fabric: dict[str, Any], a: dict[str, NDArray[Any]], inputs: dict[str, str], identity: str
) -> Build:
    addressing, shape = fabric["addressing"], fabric["topology"]
    routing = fabric["routing"]
    nodes, types = fabric["nodes"], fabric["node_types"]
    return Build(
        name=fabric["name"],
        balance=routing["balance"],
        protect=routing["protect"],
        policy={word: value for word, value in routing.items() if word not in TABLED},
        inputs=inputs,
        topology=Topology(
            family=shape["family"],
            parameters=shape["parameters"],
            graph=Graph(offsets=a["graph_offsets"], targets=a["graph_targets"]),
            kinds=tuple(shape["kinds"]),
            kind=a["kind"],
            coordinates=a["coordinates"],
            endpoints=a["endpoints"],
            diameter=shape["diameter"],
            hierarchy=shape["hierarchy"],
        ),
        wiring=Wiring(
            names=tuple(nodes["names"]),
            management=tuple(nodes["management"]),
            host_names=tuple(nodes["hosts"]),
            datapath_id=a["datapath_id"],
            port=a["port"],
            far=a["far"],
            far_port=a["far_port"],
            host_port=a["host_port"],
            node_type=a["node_type"],
            type_names=tuple(types["names"]),
            port_names=tuple(tuple(names) for names in types["ports"]),
        ),
        addressing=Addressing(
            ipv4=IPv4Network(addressing["ipv4"]),
            ipv4_length=addressing["ipv4_length"],
            ipv6=IPv6Network(addressing["ipv6"]) if addressing["ipv6"] else None,
            gateway_mac=addressing["gateway_mac"],
            host_mac=a["host_mac"],
            hierarchy=shape["hierarchy"],
        ),
        tables=Tables(
            routes=Routes(
                prefix=a["route_prefix"],
                egress=a["route_egress"],
                aggregate=a["route_aggregate"],
            ),
            classes=Classes(
                port=a["class_port"],
                alternate=a["class_alternate"],
                weight=a["class_weight"],
                protection=a["class_protection"],
                bounce=a["class_bounce"],
            ),
        ),
        hardware=restore(a, fabric.get("hardware")),
        identity=identity,
    )


def damaged(folder: Path) -> list[Problem]:
    """The files of a build that are not what its manifest says they are."""
    files: dict[str, str] = json.loads((folder / MANIFEST).read_text())["files"]
    return [
        Problem(
            file=str(folder / name),
            required="the file as it was compiled",
            given="another content" if (folder / name).is_file() else "no file",
            todo="compile the build again",
        )
        for name, digest in files.items()
        if not (folder / name).is_file() or _digest(folder / name) != digest
    ]


def mark_verified(folder: Path, identity: str, result: Mapping[str, Any] | None) -> None:
    """Leave the mark that verification has passed on this build; None takes it away."""
    mark = folder / VERIFIED
    if result is None:
        mark.unlink(missing_ok=True)
        return
    beside = folder / f".{VERIFIED}.{os.getpid()}"
    beside.write_text(json.dumps({"build": identity, **result}, indent=1))
    beside.rename(mark)


def require_verified(folder: Path, build: Build) -> None:
    """Refuse a build that verification has not passed on, or that changed since.

    Raises:
        InputError: in both cases; what is damaged is named.
    """
    try:
        mark = json.loads((folder / VERIFIED).read_text())["build"]
    except (OSError, ValueError, KeyError):
        mark = ""
    if mark != build.identity:
        raise InputError(
            Problem(
                file=str(folder),
                required="a build that verify has passed on",
                given="one that it has not",
                todo=f"run: polarfab verify {folder} (or --unverified, to use it as it is)",
            )
        )
    if problems := damaged(folder):
        raise InputError(problems)
