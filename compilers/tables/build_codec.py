"""Encoding and decoding of builds: named arrays and plain JSON data.

The dataclasses of a build declare both. `to_json` and `arrays_of` take a build apart, `from_json`
makes one of its parts, and `require_declared` checks every array against its declaration. To add
an array to the build, declare it in the dataclass that it belongs to.

`compilers.tables.array_declarations` explains the declarations. Some large arrays are not stored: a
build has the arrays to compute them from instead (`COMPUTED`). These are declared in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from ipaddress import IPv4Network, IPv6Network
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from compilers.tables.array_declarations import Declaration, Misfit, Sizes, scalar_types
from compilers.tables.build import Build
from compilers.tables.computed_array import ComputedArray, ComputedEgress
from compilers.tables.intermediate_form import Classes, Routes
from compilers.tables.line_rows import LineEgress, LineProgram
from compilers.tables.packed_alternates import AlternateLinks, AlternatePorts, AlternateWeights
from compilers.tables.star_rows import StarEgress, StarPrefixes, StarProgram
from compilers.topology.adjacency import Graph
from compilers.topology.families import family_named, too_large_values
from compilers.topology.labelled_graph import Topology
from compilers.wiring.hardware import Hardware
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
"""By the name of an array: classes that compute it, each with the class of what is stored."""
NODES = {"names": "names", "management": "management", "hosts": "host_names"}
"""The keys of `nodes` in fabric.json, with the fields of `Wiring` that they hold."""
NODE_TYPES = {"names": "type_names", "ports": "port_names"}
"""The keys of `node_types` in fabric.json, with the fields of `Wiring` that they hold."""
OF_THE_USER = ("base", "vars", "node_vars")
"""Fields of `Build` whose content is the user's: it is stored as it is."""
IF_NOT_EMPTY = ("systems", "control", "disabled_ports")
"""Fields of `Build` that are stored only if they have items, as earlier releases had no such
fields."""
LONGEST_TEXT = 1000
"""The most characters of a text that is not the user's."""
DEEPEST = 100
"""The most levels of nesting of a value; a fabric.yaml may have half as many."""
IPV4_BITS = 32
"""The bits of an IPv4 address."""
TEXTS = (IPv4Network, IPv6Network, Fraction)
"""Types whose values are texts in JSON."""


@cache
def _fields(dataclass_type: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name: declarations of arrays and lists, else types."""
    prefix = PREFIX.get(dataclass_type, "")
    types_of = get_type_hints(dataclass_type, include_extras=True)
    for name, hint in types_of.items():
        if get_origin(hint) is Annotated:
            value, *shape_and_rule = get_args(hint)
            types = () if get_origin(value) is tuple else tuple(scalar_types(value))
            types_of[name] = Declaration(prefix + name, value, types, *shape_and_rule)
    return types_of


def arrays_of(value: Any) -> Iterator[tuple[Declaration, NDArray[Any]]]:
    """Yield every stored array of a dataclass and of the dataclasses in it, with its declaration.

    They come in the order of the fields. An array that serves two computed arrays comes once.
    """
    arrays = {
        declared.name: (declared, array)
        for declared, array in _declared_in(value)
        if declared.is_array
    }
    for declared, array in arrays.values():
        if not isinstance(array, ComputedArray):
            yield declared, array


def _declared_in(value: Any) -> Iterator[tuple[Declaration, Any]]:
    """Yield all arrays and lists of a dataclass and of the dataclasses in its fields.

    Each comes with its declaration.
    """
    for name, field in _fields(value.__class__).items():
        inner = getattr(value, name)
        if isinstance(field, Declaration):
            yield field, inner
        if isinstance(inner, ComputedArray):
            yield from _declared_in(inner.packed)
        elif is_dataclass(inner):
            yield from _declared_in(inner)


def require_declared(build: Build) -> None:
    """Pass when every array and list of a build is as it is declared.

    Types and shapes are looked at first, then what belongs to each other, then ranges of values.

    Raises:
        Misfit: an array, list or value is not as it should be.
    """
    sizes: Sizes = {
        "S": build.topology.graph.order,
        "hosts": build.wiring.host_port.size,
        "ports": max(map(len, build.wiring.port_names), default=0),
    }
    declared = list(_declared_in(build))
    for field, value in declared:
        if wrong := field.misfit(value, sizes):
            raise Misfit(field.name if field.is_array else "", wrong)
    hierarchy = build.topology.hierarchy
    if not 1 <= hierarchy <= sizes["S"]:
        raise Misfit("", f"topology: hierarchy is {shown(hierarchy)}, not 1 to S")
    supernodes = sizes["S"] // hierarchy if hierarchy > 1 else 0
    sizes |= {"prefixes": sizes["S"] + supernodes, "macs": 1 << 48}
    _require_fitting_parts(build, sizes)
    for field, value in declared:
        is_stored = field.is_array and not isinstance(value, ComputedArray)
        if is_stored and (wrong := field.out_of_range(value, sizes)):
            raise Misfit(field.name, wrong)


def _require_fitting_parts(build: Build, sizes: Sizes) -> None:
    """Pass when the parts of a build fit together, where no declaration of one array says so.

    Raises:
        Misfit: they do not.
    """
    if not sizes["G"] or sizes["S"] % sizes["G"]:
        raise Misfit("route_prefix", "route_prefix has no row for S/G switches")
    if build.systems and len(build.systems) != sizes["S"]:
        raise Misfit("", f"systems has {len(build.systems)} items, not S")
    if not _is_member_of_family(build.topology):
        title = shown(build.topology.title())
        raise Misfit("", f"topology: no member of {build.topology.family} is {title}")
    graph, offsets = build.topology.graph, build.topology.graph.offsets
    if offsets[0] or offsets[-1] != 2 * sizes["E"] or (np.diff(offsets) < 0).any():
        raise Misfit("graph_offsets", "graph_offsets does not ascend from 0 to 2E")
    if (graph.degrees != np.bincount(graph.targets, minlength=graph.order)).any():
        raise Misfit("graph_targets", "graph_targets has links at one end only")
    if not 0 <= build.addressing.gateway_mac < sizes["macs"]:
        raise Misfit("", f"gateway_mac is {build.addressing.gateway_mac}")
    if not 0 < build.addressing.ipv4_length <= IPV4_BITS:
        raise Misfit("", f"ipv4_length is {build.addressing.ipv4_length}")
    egress = build.tables.routes.egress
    if isinstance(egress, ComputedEgress) and egress.classes > sizes["C"]:
        text = f"{len(egress)} switches with rows for {egress.classes} classes of {sizes['C']}"
        raise Misfit("class_port", text)


def _is_member_of_family(topology: Topology) -> bool:
    """Whether a topology's family has a member with its parameters and its number of vertices.

    True where that cannot be known: the family is not installed, or it is described by a file.
    """
    family = family_named(topology.family)
    if family is None or family.described:
        return True
    try:
        # Some families count to a parameter, or look whether it is a prime power.
        if too_large_values(topology.parameters) or family.check(topology.parameters):
            return False
        return family.order(topology.parameters) == topology.graph.order
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return False


def to_json(build: Build) -> str:
    """Return the text of `fabric.json`: everything of a build but its arrays."""
    wiring, addressing = build.wiring, _plain(build.addressing)
    del addressing["hierarchy"]  # the topology has it already
    fabric = {
        "name": build.name,
        "topology": build.topology,
        "routing": {"balance": build.balance, **build.policy},
        "forwarding": build.forwarding,
        "addressing": addressing,
        "nodes": {key: getattr(wiring, name) for key, name in NODES.items()},
        "node_types": {key: getattr(wiring, name) for key, name in NODE_TYPES.items()},
        "hardware": build.hardware,
        **{name: getattr(build, name) for name in OF_THE_USER},
        **{name: getattr(build, name) for name in IF_NOT_EMPTY if getattr(build, name)},
    }
    return json.dumps(fabric, indent=1, default=_plain)


def _plain(value: Any) -> Any:
    """Return a value as JSON data; of a dataclass, the fields that are not arrays."""
    if isinstance(value, TEXTS):
        return str(value)
    values = {name: getattr(value, name) for name in _fields(value.__class__)}
    optional = _optional(value.__class__)
    left_out = {name for name, default in optional.items() if values[name] == default}
    return {
        name: inner
        for name, inner in values.items()
        if name not in left_out and not isinstance(inner, np.ndarray | ComputedArray | Graph)
    }


@cache
def _optional(dataclass_type: Any) -> dict[str, Any]:
    """Return the defaults of fields that are stored only if they have another value.

    These are lists that are empty by default, and fields whose metadata says so. A later release
    adds fields in this way: builds that have the defaults keep their bytes and their identity.
    """
    return {
        field.name: field.default
        for field in fields(dataclass_type)
        if field.default == () or field.metadata.get("stored") == "unless default"
    }


def from_json(fabric: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], **more: Any) -> Build:
    """Return the build with this plain data and these arrays.

    Args:
        fabric: the content of `fabric.json`.
        arrays: the stored arrays by their names.
        more: fields of the build that are stored elsewhere.

    Raises:
        KeyError, TypeError, ValueError: a part is missing, or is not what is declared.
    """
    for key, value in fabric.items():
        _require_plain(key, value)
    topology, routing = fabric["topology"], fabric["routing"]
    values = {
        "name": fabric["name"],
        "balance": routing["balance"],
        "forwarding": fabric["forwarding"],
        "policy": {key: value for key, value in routing.items() if key != "balance"},
        "topology": topology | {"graph": {}},
        "wiring": {
            **{name: fabric["nodes"][key] for key, name in NODES.items()},
            **{name: fabric["node_types"][key] for key, name in NODE_TYPES.items()},
        },
        "addressing": fabric["addressing"] | {"hierarchy": topology["hierarchy"]},
        "tables": {"routes": {}, "classes": {}},
        "hardware": fabric.get("hardware"),
        **{name: fabric[name] for name in OF_THE_USER},
        "allocations": {"numbers": {}, "names": {}},  # in a file of their own
        "systems": fabric.get("systems", ()),
        "control": fabric.get("control", {}),
        "disabled_ports": fabric.get("disabled_ports", {}),
    }
    build: Build = _restore(Build, values | more, _Arrays(arrays))
    require_declared(build)
    return build


def _require_plain(key: str, value: Any, depth: int = 1) -> None:
    """Pass when a value is not nested too deeply, and all texts in it can stand in a line.

    Names stand in logs, metrics and configurations: one with a newline would forge a line of them.
    What is the user's may have any text. How deep a value may be nested until Python gives up
    depends on who reads it: one controller could take a build that the next one could not.

    Args:
        key: the key of `fabric.json` that has the value.
        value: the plain data.
        depth: how deep the value is nested itself.

    Raises:
        Misfit: a text is not printable or longer than `LONGEST_TEXT`, or a value is nested deeper
            than `DEEPEST`.
    """
    if depth > DEEPEST:
        raise Misfit("", f"{key} has more than {DEEPEST} levels of nesting")
    if isinstance(value, dict):
        value = [*value, *value.values()]
    items = value if isinstance(value, list) else [value]
    texts = [item for item in items if isinstance(item, str)]
    is_wrong = max(map(len, texts), default=0) > LONGEST_TEXT or not "".join(texts).isprintable()
    if is_wrong and key not in OF_THE_USER:
        raise Misfit("", f"{key} has a text that is not printable or too long")
    for item in items:
        if isinstance(item, list | dict):
            _require_plain(key, item, depth + 1)


class _Arrays(dict[Any, Any]):
    """The arrays of a build by their names.

    An array that is not stored is computed from stored ones. The stored ones are the fields of a
    dataclass, which is made once, and kept under its class.
    """

    def __missing__(self, name: str) -> Any:
        """Return the computed array of this name.

        Raises:
            KeyError: nothing is stored to compute it from.
        """
        for computed, packed in COMPUTED.get(name, ()):
            if any(declared.name in self for declared in _fields(packed).values()):
                if packed not in self:
                    self[packed] = _restore(packed, {}, self)
                return computed(self[packed])
        raise KeyError(name)


def _restore(kind: Any, value: Any, arrays: _Arrays, name: str = "") -> Any:
    """Return a value of a type, from plain data and arrays.

    Args:
        kind: the type, or `Declaration` for an array or list.
        value: the plain data.
        arrays: all arrays of the build.
        name: of the field, for messages.

    Raises:
        KeyError, TypeError, ValueError: a part is missing, or of another type.
    """
    if isinstance(kind, Declaration):
        return arrays[kind.name] if kind.is_array else _restore(kind.kind, value, arrays, name)
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any or (NoneType in parts and value is None):
        return value
    if NoneType in parts:
        return _restore(parts[0], value, arrays, name)
    if is_dataclass(kind) and isinstance(kind, type):
        return _restore_dataclass(kind, _of_type(dict, value, name), arrays)
    if origin is tuple:
        items = _of_type(list | tuple, value, name)
        if {*map(type, items)} == {parts[0]}:  # long lists of names are taken at once
            return tuple(items)
        return tuple(_restore(parts[0], item, arrays, name) for item in items)
    if origin is Mapping:
        entries = _of_type(dict, value, name).items()
        return {key: _restore(parts[1], item, arrays, name) for key, item in entries}
    if origin is Literal:
        return _of_type(str, value, name)
    if kind in TEXTS:
        try:
            return kind(_of_type(str, value, name))
        except ZeroDivisionError as error:
            raise ValueError(f"{name}: {shown(value)}") from error
    return _of_type(kind, value, name)


def _restore_dataclass(dataclass_type: Any, plain: Mapping[str, Any], arrays: _Arrays) -> Any:
    """Return a dataclass whose fields are restored one by one; arrays are not in the plain data."""
    values = {**_optional(dataclass_type), **plain}
    restored = {}
    for name, kind in _fields(dataclass_type).items():
        is_array = isinstance(kind, Declaration) and kind.is_array
        restored[name] = _restore(kind, None if is_array else values[name], arrays, name)
    return dataclass_type(**restored)


def _of_type(kind: Any, value: Any, name: str) -> Any:
    """Return the value if it is of a type; True and False are no numbers.

    Raises:
        TypeError: it is of another type.
    """
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise TypeError(f"{name}: {shown(value)}")
