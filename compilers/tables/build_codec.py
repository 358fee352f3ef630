"""Encoding and decoding of builds: named arrays and plain JSON data.

The dataclasses of a build declare both. A field `Annotated[NDArray[np.int32], "S K", "-1..S"]` is
an array of int32 with dimensions S and K, each as long as in every other array that names it, and
with values from -1 to S - 1. `S+1` and `2E` are lengths derived from a name; `ports` is the largest
port number, `prefixes` and `macs` are how many of these there are. `Annotated[tuple[str, ...], "S",
"name"]` is a list of S names. To add an array to the build, declare it in the dataclass that it
belongs to.

In the place of an array a build may have those that it is computed from (`COMPUTED`), declared in
the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from functools import cache
from ipaddress import IPv4Network, IPv6Network
from itertools import filterfalse, repeat
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.computed_array import ComputedArray, ComputedEgress
from compilers.tables.folders.generations import FABRIC
from compilers.tables.intermediate_form import Classes, Routes
from compilers.tables.line_rows import LineEgress, LineProgram
from compilers.tables.packed_alternates import AlternateLinks, AlternatePorts, AlternateWeights
from compilers.tables.star_rows import StarEgress, StarPrefixes, StarProgram
from compilers.topology.adjacency import Graph
from compilers.topology.families import family_named
from compilers.wiring.hardware import Hardware
from inventory.names import NAME
from inventory.problems import shown

PREFIX = {
    Graph: "graph_",
    Routes: "route_",
    Classes: "class_",
    Hardware: "hardware_",
    AlternateLinks: "spread_",
    StarProgram: "star_",
    LineProgram: "line_",
}
"""The prefix of a dataclass's array names; without one, an array is named after its field."""
COMPUTED: dict[str, tuple[tuple[Any, Any], ...]] = {
    "route_prefix": ((StarPrefixes, StarProgram),),
    "route_egress": ((StarEgress, StarProgram), (LineEgress, LineProgram)),
    "class_alternate": ((AlternatePorts, AlternateLinks),),
    "class_weight": ((AlternateWeights, AlternateLinks),),
}
"""By the name of an array: how it is computed where it is not stored, and from what."""
NODES = {"names": "names", "management": "management", "hosts": "host_names"}
NODE_TYPES = {"names": "type_names", "ports": "port_names"}
FREE = ("base", "vars", "node_vars")
"""Plain data that stays as it is."""
TEXTS = (IPv4Network, IPv6Network, Fraction)
"""Types whose values are texts in JSON."""
OWN = ("datapath_id", "host_mac", "hardware_")
"""How the names of arrays begin that planes which forward alike have each for itself."""
LENGTH = re.compile(r"(\d*)([A-Za-z]*)\+?(\d*)")
Sizes = dict[str, int]


class Misfit(ValueError):
    """A field of a build is not as it is declared; file is where it is, below the folder.

    array: the name of an array, "" for plain data.
    """

    def __init__(self, array: str, text: str) -> None:
        super().__init__(text)
        self.file = array_file(array) if array else FABRIC


@dataclass(frozen=True, slots=True)
class Declared:
    """A declared array or list.

    name: of the array, or of the list's field. types: those that an array may have; none for a
    list. kind: the annotation. shape: the dimensions of an array, the length of a list. rule: the
    range of an array's values ("0..C marks": the two largest numbers of the type are values too);
    what each item of a list is (`name`).
    """

    name: str
    kind: Any
    types: tuple[str, ...]
    shape: str
    rule: str = ""

    def __str__(self) -> str:
        """The form in messages: `int32[S, K]`."""
        return f"{' or '.join(self.types)}[{', '.join(self.shape.split())}]"

    def misfit(self, value: Any, sizes: Sizes) -> str:
        """The mismatch with the declaration, "" if none; adds new lengths to `sizes`."""
        words, shape = self.shape.split(), value.shape if self.types else (len(value),)
        fits = len(shape) == len(words) and all(map(_fits, words, shape, repeat(sizes)))
        if not self.types and not fits:
            return f"{self.name} has {len(value)} items, not {self.shape}"
        if self.types and not (fits and str(value.dtype) in self.types):
            return f"{self.name} is {value.dtype}{list(shape)}, not {self}"
        if self.rule == "name":
            wrong = next(filterfalse(NAME.fullmatch, value), None)
            return "" if wrong is None else f"{self.name} has {shown(wrong)}, which is no name"
        return ""

    def stray(self, array: NDArray[Any], sizes: Sizes) -> str:
        """The values of an array out of range in words, "" if none are."""
        if not self.rule or not array.size:
            return ""
        low, end, *marks = re.split(r"\.\.| ", self.rule)
        below = _length(end, sizes)
        highest = int(array.max())
        if marks and highest >= below:
            none = int(np.iinfo(array.dtype).max) - 1
            highest = max(int(row[row < none].max(initial=0)) for row in array)
        lowest = 0 if array.dtype.kind == "u" else int(array.min())
        if not int(low) <= lowest <= highest < below:
            return f"{self.name} has values outside {self.rule} ({end} is {below})"
        return ""


def _fits(word: str, length: int, sizes: Sizes) -> bool:
    """Whether a declared dimension can have this length, given the `sizes` known so far."""
    times, name, more = LENGTH.findall(word)[0]
    factor, rest = int(times or 1), length - int(more or 0)
    if name and name not in sizes:
        sizes[name] = rest // factor
    return rest >= 0 and _length(word, sizes) == length


def _length(word: str, sizes: Sizes) -> int:
    times, name, more = LENGTH.findall(word)[0]
    return int(times or 1) * (sizes[name] if name else 1) + int(more or 0)


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """The fields of a dataclass: what is `Declared` of each array and list, else the type."""
    prefix, found = PREFIX.get(kind, ""), get_type_hints(kind, include_extras=True)
    for name, hint in found.items():
        if get_origin(hint) is Annotated:
            value, *more = get_args(hint)
            types = () if get_origin(value) is tuple else tuple(_scalar_types(value))
            found[name] = Declared(prefix + name, value, types, *more)
    return found


def _scalar_types(hint: Any) -> Iterator[str]:
    """The scalar types that an array's annotation names, at any depth: numpy changes the form."""
    if isinstance(hint, type) and issubclass(hint, np.generic):
        yield str(np.dtype(hint))
    for inner in get_args(hint):
        yield from _scalar_types(inner)


def arrays_of(value: Any) -> Iterator[tuple[Declared, NDArray[Any]]]:
    """Every stored array in a dataclass and in those it holds, once, in the order of the fields."""
    found = {field.name: (field, inner) for field, inner in _declared_in(value) if field.types}
    return (each for each in found.values() if not isinstance(each[1], ComputedArray))


def first_alike(builds: Sequence[Build], plane: int) -> int | None:
    """The first plane before this one that forwards alike, None where none does."""
    return next((each for each in range(plane) if alike(builds[each], builds[plane])), None)


def alike(one: Build, other: Build) -> bool:
    """Whether two builds forward alike: the same meaning, tables, ports and graph."""
    here, there = ({f.name: array for f, array in arrays_of(build)} for build in (one, other))
    names = [name for name in here.keys() | there.keys() if not name.startswith(OWN)]
    return (
        all(getattr(one, word) == getattr(other, word) for word in ("forwarding", "policy"))
        and all(name in here and name in there for name in names)
        and all(here[n] is there[n] or np.array_equal(here[n], there[n]) for n in names)
    )


def _declared_in(value: Any) -> Iterator[tuple[Declared, Any]]:
    for name, field in _fields(value.__class__).items():
        inner = getattr(value, name)
        if isinstance(field, Declared):
            yield field, inner
        if isinstance(inner, ComputedArray):
            yield from _declared_in(inner.packed)
        elif is_dataclass(inner):
            yield from _declared_in(inner)


def require_declared(build: Build) -> None:
    """Pass when every array and list of a build is as it is declared.

    Raises:
        Misfit: one is not.
    """
    hosts, ports = build.wiring.host_port.size, max(map(len, build.wiring.port_names), default=0)
    sizes: Sizes = {"S": build.topology.graph.order, "hosts": hosts, "ports": ports}
    declared = list(_declared_in(build))
    for field, value in declared:
        if wrong := field.misfit(value, sizes):
            raise Misfit(field.name if field.types else "", wrong)
    supernodes = sizes["S"] // build.topology.hierarchy if build.topology.hierarchy > 1 else 0
    sizes |= {"prefixes": sizes["S"] + supernodes, "macs": 1 << 48}
    if not sizes["G"] or sizes["S"] % sizes["G"]:
        raise Misfit("route_prefix", "route_prefix has no row for S/G switches")
    for wrong in _unnamed(build):
        raise Misfit("", wrong)
    graph, offsets = build.topology.graph, build.topology.graph.offsets
    if offsets[0] or offsets[-1] != 2 * sizes["E"] or (np.diff(offsets) < 0).any():
        raise Misfit("graph_offsets", "graph_offsets does not ascend from 0 to 2E")
    if (graph.degrees != np.bincount(graph.targets, minlength=graph.order)).any():
        raise Misfit("graph_targets", "graph_targets has links at one end only")
    if not 0 <= build.addressing.gateway_mac < sizes["macs"]:
        raise Misfit("", f"gateway_mac is {build.addressing.gateway_mac}")
    egress = build.tables.routes.egress
    if isinstance(egress, ComputedEgress) and egress.classes > sizes["C"]:
        text = f"{len(egress)} switches with rows for {egress.classes} classes of {sizes['C']}"
        raise Misfit("class_port", text)
    for field, value in declared:
        stored = field.types and not isinstance(value, ComputedArray)
        if stored and (wrong := field.stray(value, sizes)):
            raise Misfit(field.name, wrong)


def _unnamed(build: Build) -> Iterator[str]:
    """What is wrong with a topology that is not its family's member."""
    topology = build.topology
    family = family_named(topology.family)
    if family is None or family.described:  # not installed; a file that may be gone
        return
    try:
        known = not family.check(topology.parameters)
        known = known and family.order(topology.parameters) == topology.graph.order
    except (KeyError, TypeError, ValueError):
        known = False
    if not known:
        yield f"topology: no member of {topology.family} is {shown(topology.title())}"


def array_file(array: str) -> str:
    """Where an array is, below the folder of a build."""
    return f"arrays/{array}.npy"


def to_json(build: Build) -> str:
    """The names, addresses and policy of a build: everything but the arrays."""
    wiring, addressing = build.wiring, _plain(build.addressing)
    del addressing["hierarchy"]  # the topology's
    fabric = {
        "name": build.name,
        "topology": build.topology,
        "routing": {"balance": build.balance, **build.policy},
        "forwarding": build.forwarding,
        "addressing": addressing,
        "nodes": {word: getattr(wiring, name) for word, name in NODES.items()},
        "node_types": {word: getattr(wiring, name) for word, name in NODE_TYPES.items()},
        "hardware": build.hardware,
        **{word: getattr(build, word) for word in FREE},
    }
    return json.dumps(fabric, indent=1, default=_plain)


def _plain(value: Any) -> Any:
    """A value as JSON data; of a dataclass, the fields that are not arrays."""
    if isinstance(value, TEXTS):
        return str(value)
    found = {name: getattr(value, name) for name in _fields(value.__class__)}
    left_out = {name for name in _added_later(value.__class__) if not found[name]}
    return {
        name: inner
        for name, inner in found.items()
        if name not in left_out and not isinstance(inner, np.ndarray | ComputedArray | Graph)
    }


@cache
def _added_later(kind: Any) -> frozenset[str]:
    """Fields that a build has only where they are not empty, so that others stay as they were."""
    return frozenset(field.name for field in fields(kind) if field.default == ())


def from_json(fabric: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], **more: Any) -> Build:
    """The build with this plain data and these arrays.

    Args:
        fabric: what `to_json` gave, read.
        arrays: by the names of their declarations.
        more: fields of the build that are stored elsewhere.

    Raises:
        KeyError, TypeError, ValueError: something is missing or of another kind.
    """
    topology, routing = fabric["topology"], fabric["routing"]
    values = {
        "name": fabric["name"],
        "balance": routing["balance"],
        "forwarding": fabric["forwarding"],
        "policy": {word: value for word, value in routing.items() if word != "balance"},
        "topology": topology | {"graph": {}},
        "wiring": {
            **{name: fabric["nodes"][word] for word, name in NODES.items()},
            **{name: fabric["node_types"][word] for word, name in NODE_TYPES.items()},
        },
        "addressing": fabric["addressing"] | {"hierarchy": topology["hierarchy"]},
        "tables": {"routes": {}, "classes": {}},
        "hardware": fabric.get("hardware"),
        **{word: fabric[word] for word in FREE},
    }
    build: Build = _restore(Build, values | more, _Arrays(arrays))
    require_declared(build)
    return build


class _Arrays(dict[Any, Any]):
    """The arrays of a build by their names; one that is not stored is computed from those that are.

    What they are computed from is made once, and is there by its class. KeyError where there are
    neither.
    """

    def __missing__(self, name: str) -> Any:
        for computed, kind in COMPUTED.get(name, ()):
            if any(field.name in self for field in _fields(kind).values()):
                if kind not in self:
                    self[kind] = _restore(kind, {}, self)
                return computed(self[kind])
        raise KeyError(name)


def _restore(kind: Any, value: Any, arrays: _Arrays, name: str = "") -> Any:
    """A value of this type, from plain data and arrays."""
    if isinstance(kind, Declared):
        return arrays[kind.name] if kind.types else _restore(kind.kind, value, arrays, name)
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any or (NoneType in parts and value is None):
        return value
    if NoneType in parts:
        return _restore(parts[0], value, arrays, name)
    if is_dataclass(kind) and isinstance(kind, type):
        plain = dict.fromkeys(_added_later(kind), ()) | _of_type(dict, value, name)
        inner = _fields(kind).items()
        given = {f: None if isinstance(k, Declared) and k.types else plain[f] for f, k in inner}
        return kind(**{f: _restore(k, given[f], arrays, f) for f, k in inner})
    if origin is tuple:
        items = _of_type(list | tuple, value, name)
        if {*map(type, items)} == {parts[0]}:  # many, all plain
            return tuple(items)
        return tuple(_restore(parts[0], item, arrays, name) for item in items)
    if origin is Mapping:
        known = _of_type(dict, value, name).items()
        return {key: _restore(parts[1], item, arrays, name) for key, item in known}
    if origin is Literal:
        return _of_type(str, value, name)
    if kind in TEXTS:
        try:
            return kind(_of_type(str, value, name))
        except ZeroDivisionError as error:
            raise ValueError(f"{name}: {shown(value)}") from error
    return _of_type(kind, value, name)


def _of_type(kind: Any, value: Any, name: str) -> Any:
    """The value, which must be of a type; True is no number.

    Raises:
        TypeError: it is not.
    """
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise TypeError(f"{name}: {shown(value)}")
