"""Encoding and decoding of builds: named arrays and plain JSON data.

The dataclasses of a build declare both. A field `Annotated[NDArray[np.int32], "S K", "-1..S"]` is
an array of int32 with dimensions S and K, each as long as in every other array that names it, and
with values from -1 to S - 1. `S+1` and `2E` are lengths derived from a name. To add an array to the
build, declare it in the dataclass that it belongs to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from ipaddress import IPv4Network, IPv6Network
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.intermediate_form import Classes, Routes
from compilers.topology.graph import Graph
from compilers.wiring.hardware import Hardware

PREFIX = {Graph: "graph_", Routes: "route_", Classes: "class_", Hardware: "hardware_"}
"""The prefix of a dataclass's array names; without one, an array is named after its field."""
NODES = {"names": "names", "management": "management", "hosts": "host_names"}
NODE_TYPES = {"names": "type_names", "ports": "port_names"}
TABLED = ("balance", "protect")
LENGTH = re.compile(r"(\d*)([A-Za-z]*)\+?(\d*)")


@dataclass(frozen=True, slots=True)
class ArrayField:
    """A declared array: its possible types, its dimensions, the range of its values."""

    name: str
    types: tuple[str, ...]
    dimensions: str
    values: str = ""

    def __str__(self) -> str:
        """The form in messages: `int32[S, K]`."""
        return f"{' or '.join(self.types)}[{', '.join(self.dimensions.split())}]"

    def misfit(self, array: NDArray[Any], sizes: dict[str, int]) -> str:
        """The mismatch with the declaration, "" if none; adds new lengths to `sizes`."""
        shape, declared = array.shape, self.dimensions.split()
        fits = len(shape) == len(declared) and str(array.dtype) in self.types
        if not fits or not all(_fits(*pair, sizes) for pair in zip(declared, shape, strict=True)):
            return f"{self.name} is {array.dtype}{list(shape)}, not {self}"
        if self.values and array.size:
            low, end = self.values.split("..")
            if not int(low) <= array.min() <= array.max() < sizes[end]:
                return f"{self.name} has values outside {self.values}"
        return ""


def _fits(dimension: str, length: int, sizes: dict[str, int]) -> bool:
    """Whether a declared dimension can have this length, given the `sizes` known so far."""
    times, name, more = LENGTH.findall(dimension)[0]
    factor, rest = int(times or 1), length - int(more or 0)
    return factor * (sizes.setdefault(name, rest // factor) if name else 1) == rest


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """The fields of a dataclass: an `ArrayField` for each array, else the type."""
    hints = get_type_hints(kind, include_extras=True)
    prefix = PREFIX.get(kind, "")
    return {
        name: _array_field(prefix + name, hint) if get_origin(hint) is Annotated else hint
        for name, hint in hints.items()
    }


def _array_field(name: str, hint: Any) -> ArrayField:
    array, *declared = get_args(hint)
    kinds = get_args(array) if get_origin(array) is not np.ndarray else [array]
    types = tuple(str(np.dtype(get_args(get_args(kind)[1])[0])) for kind in kinds)
    return ArrayField(name, types, *declared)


def arrays_of(value: Any) -> Iterator[tuple[ArrayField, NDArray[Any]]]:
    """Every array in a dataclass and in the dataclasses it holds, in the order of the fields."""
    for name, field in _fields(value.__class__).items():
        inner = getattr(value, name)
        if isinstance(field, ArrayField):
            yield field, inner
        elif is_dataclass(inner):
            yield from arrays_of(inner)


def misfit(build: Build) -> str:
    """The first mismatch between an array and its declaration; "" if there is none."""
    sizes: dict[str, int] = {}
    return next(filter(None, (field.misfit(array, sizes) for field, array in arrays_of(build))), "")


def to_json(build: Build) -> str:
    """The names, addresses and policy of a build: everything but the arrays."""
    wiring, addressing = build.wiring, _plain(build.addressing)
    del addressing["hierarchy"]  # stored with the topology
    fabric = {
        "name": build.name,
        "topology": build.topology,
        "routing": {**{word: getattr(build, word) for word in TABLED}, **build.policy},
        "addressing": addressing,
        "nodes": {word: getattr(wiring, name) for word, name in NODES.items()},
        "node_types": {word: getattr(wiring, name) for word, name in NODE_TYPES.items()},
        "hardware": build.hardware,
    }
    return json.dumps(fabric, indent=1, default=_plain)


def _plain(value: Any) -> Any:
    """A value as JSON data; of a dataclass, the fields that are not arrays."""
    if isinstance(value, IPv4Network | IPv6Network):
        return str(value)
    fields = {name: getattr(value, name) for name in _fields(value.__class__)}
    return {
        name: inner for name, inner in fields.items() if not isinstance(inner, np.ndarray | Graph)
    }


def from_json(fabric: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], **more: Any) -> Build:
    """The build with this plain data and these arrays.

    Args:
        fabric: the parsed text of `to_json`.
        arrays: by the names of their declarations.
        more: fields of the build that are stored elsewhere.

    Raises:
        KeyError, TypeError, ValueError: something is missing or of the wrong type.
    """
    topology, routing = fabric["topology"], fabric["routing"]
    values = {
        "name": fabric["name"],
        **{word: routing[word] for word in TABLED},
        "policy": {word: value for word, value in routing.items() if word not in TABLED},
        "topology": topology | {"graph": {}},
        "wiring": {
            **{name: fabric["nodes"][word] for word, name in NODES.items()},
            **{name: fabric["node_types"][word] for word, name in NODE_TYPES.items()},
        },
        "addressing": fabric["addressing"] | {"hierarchy": topology["hierarchy"]},
        "tables": {"routes": {}, "classes": {}},
        "hardware": fabric.get("hardware"),
    }
    build: Build = _restore(Build, values | more, arrays)
    if wrong := misfit(build):
        raise ValueError(wrong)
    return build


def _restore(kind: Any, value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """A value of this type, from plain data and arrays."""
    record = is_dataclass(kind)
    if record:
        values = {
            name: arrays[field.name]
            if isinstance(field, ArrayField)
            else _restore(field, value[name], arrays)
            for name, field in _fields(kind).items()
        }
        return kind(**values)
    parts = get_args(kind)
    if NoneType in parts:
        return None if value is None else _restore(parts[0], value, arrays)
    if get_origin(kind) is tuple:
        plain = parts[0] in (str, int)
        return tuple(value) if plain else tuple(_restore(parts[0], v, arrays) for v in value)
    return kind(value) if kind in (IPv4Network, IPv6Network) else value
