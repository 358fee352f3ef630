"""The graph that a verb is about: of a family with parameters, of a fabric.yaml or of a build.

Verbs take their words with `graph_options`, and turn them into a graph or a fabric by the functions
here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from inventory.problems import InputError, Problem, did_you_mean
from polarfab.shared_options import shared, together

if TYPE_CHECKING:
    from compilers.topology.labelled_graph import Topology
    from polarfab.fabric import Fabric

parameter_options = together(shared("--q"), shared("--supernode"), shared("--degree"))
"""The options with the parameters of the families that are compiled."""


graph_options = together(
    click.argument("subject", metavar="FAMILY|FABRIC|BUILD"),
    click.argument("parameters", nargs=-1, metavar="[NAME=VALUE]..."),
    parameter_options,
)
"""The arguments and options that name a graph: a family with its parameters, in words or options, a
fabric.yaml or a build."""


def read_parameters(words: tuple[str, ...], **options: int | str | None) -> dict[str, Any]:
    """The parameters of a family, by name, from words such as `h=6` and from options.

    An option that the user leaves out is None.

    Raises:
        InputError: a word is no NAME=VALUE, or a parameter has two values.
    """
    values: dict[str, Any] = {**options}
    for word in words:
        name, sign, value = word.partition("=")
        if not (name and sign and value):
            raise InputError.of("NAME=VALUE, as in h=6", word)
        new = int(value) if value.isascii() and value.isdigit() else value
        if values.setdefault(name, new) not in (None, new):
            raise InputError.of("one value", f"{values[name]} and {value}", key=name)
        values[name] = new
    return values


def is_family(subject: str) -> bool:
    """Whether a word names a family, also one that is for comparison only."""
    from compilers.topology.families import family_named

    return family_named(subject) is not None


def chosen_topology(
    subject: str, parameters: Mapping[str, Any], will_be_measured: bool = False
) -> Topology:
    """The graph of a family with these parameters, of a fabric.yaml or of a build.

    Args:
        subject: the name of the family, the file or the folder.
        parameters: the parameters of the family.
        will_be_measured: whether the graph is then measured or drawn, which needs more memory.

    Raises:
        InputError: there is no such subject, its parameters are wrong, or memory cannot hold it.
    """
    fabric = chosen_fabric(subject, parameters)
    return _topology_of(fabric, subject, parameters, will_be_measured)


class NamedTopology(NamedTuple):
    """A graph, and the names of its switches."""

    topology: Topology
    """The graph."""
    names: Sequence[str] | None
    """The names of the switches; None for a family, and for a fabric of several planes."""


def chosen_named_topology(subject: str, parameters: Mapping[str, Any]) -> NamedTopology:
    """The graph as `chosen_topology` gives it, and the names of its switches.

    Args:
        subject: the name of a family, a file or a folder.
        parameters: the parameters of the family.

    Raises:
        InputError: there is no such subject, its parameters are wrong, or memory cannot hold it.
    """
    from compilers.planes import cabled_planes
    from polarfab.fabric import with_installed

    fabric = chosen_fabric(subject, parameters)
    topology = _topology_of(fabric, subject, parameters, will_be_measured=False)
    if fabric is None:
        return NamedTopology(topology, None)
    if fabric.loaded is None or fabric.compiled:
        wirings = [build.wiring for build in fabric.builds]
    else:
        # Names need the cables only, so the planes are cabled but not compiled. There is no earlier
        # build; None has the numbers read from the file that `allocations` names.
        loaded = with_installed(fabric.loaded, before=None)
        wirings = [plane.wiring for plane in cabled_planes(loaded)]
    return NamedTopology(topology, wirings[0].names if len(wirings) == 1 else None)


def _topology_of(
    fabric: Fabric | None, subject: str, parameters: Mapping[str, Any], will_be_measured: bool
) -> Topology:
    """The graph of a fabric, or without a fabric that of a family.

    A fabric that is compiled has its graph. Otherwise the graph is built from the family and the
    parameters, those of the fabric's spec if there is one.
    """
    from compilers.memory_bound import MemoryBound, require_graph
    from compilers.topology.families import build_topology

    family, values = subject, parameters
    if fabric:
        if fabric.loaded is None or fabric.compiled:
            return fabric.topology
        spec = fabric.loaded.spec.topology
        family, values = spec.family, spec.parameters()
    require_graph(family, values)
    if will_be_measured:
        MemoryBound.of_family(family, values).measured().require()
    return build_topology(family, values)


def chosen_fabric(subject: str, parameters: Mapping[str, Any]) -> Fabric | None:
    """The fabric of a build folder or a fabric.yaml (`-`: standard input); None for a family.

    Args:
        subject: the folder, the file or the name of a family.
        parameters: the parameters of the family.

    Raises:
        InputError: there is no such subject, or there are parameters with a fabric.
    """
    from compilers.topology.families import known_families

    if is_family(subject):
        return None
    if subject != "-" and not Path(subject).exists():
        families = known_families()
        todo = did_you_mean(subject, families, "no file or folder is called so")
        raise InputError.of(
            f"a build, a fabric.yaml or one of {', '.join(families)}", subject, todo
        )
    surplus = [
        Problem("none with a fabric.yaml or a build", str(value), key=name)
        for name, value in parameters.items()
        if value is not None
    ]
    if surplus:
        raise InputError(surplus)
    return fabric_at(subject)


def fabric_at(place: str) -> Fabric:
    """The fabric of a build folder, or of a fabric.yaml (`-`: standard input).

    Raises:
        InputError: there is no such build or file, or it has mistakes.
    """
    from polarfab.fabric import Fabric

    return Fabric.load(place) if Path(place).is_dir() else Fabric.from_spec(place)
