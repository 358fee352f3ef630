"""Topologies by name: a family and its parameters, from a spec or the command line.

`FAMILIES` are those of the papers, `BASELINES` those that they compare with, and `graph` is any
graph in a file. All of them compile. A new family is an entry in `_ALL`, and one for its routes in
`ROUTES_OF_FAMILY` of `compilers/routing/routes_by_family.py`, unless a search is to find them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count, islice

import numpy as np
from numpy.typing import NDArray

from compilers.topology import polarfly
from compilers.topology.field import prime_powers_near
from compilers.topology.labelled_graph import Family, Parameters, Topology
from compilers.topology.polarfly import LARGEST_Q, PolarFly
from compilers.topology.polarstar import PolarStar
from compilers.topology.projective import OrthogonalFatTree, ProjectiveNetwork
from compilers.topology.supernodes import SUPERNODE_KINDS, exists, shape
from inventory.problems import InputError, Problem, did_you_mean, nearest

_ALL: tuple[Family, ...] = (PolarFly(), PolarStar(), ProjectiveNetwork(), OrthogonalFatTree())

FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
FAMILIES["demi-pn"] = FAMILIES["polarfly"]
GRAPH_FAMILY = "graph"
"""The family of one graph, which a file describes."""

_VALUES = {
    "q": "a prime power",
    "supernode": f"one of {', '.join(SUPERNODE_KINDS)}",
    "degree": "the supernode's degree",
    "file": "the file of a graph",
}


def known_families() -> list[str]:
    """The names of all families."""
    from compilers.topology.baselines import BASELINES

    return [*FAMILIES, GRAPH_FAMILY, *BASELINES]


def family_named(name: str) -> Family | None:
    """The family of a name; None where there is none."""
    if name in FAMILIES:
        return FAMILIES[name]
    if name == GRAPH_FAMILY:
        from compilers.topology.any_graph import AnyGraph

        return AnyGraph()
    from compilers.topology.baselines import BASELINES

    return BASELINES.get(name)


def vertex_names(family: str, given: Mapping[str, int | str | None]) -> tuple[str, ...]:
    """The names that a file gives its vertices; none in other families."""
    if family != GRAPH_FAMILY:
        return ()
    from compilers.topology.any_graph import AnyGraph

    return AnyGraph().vertex_names(parameters(family, given))


def check_topology(family: str, given: Mapping[str, int | str | None]) -> list[Problem]:
    """Problems of a family's name and parameters; each key is `family` or the parameter."""
    found = family_named(family)
    if found is None:
        known = known_families()
        todo = did_you_mean(
            family, known, "name a family and its parameters, not a file or a build"
        )
        wrong = Problem(f"one of {', '.join(known)}", family, todo, key="family")
        meant = _meant(family, given)
        return [wrong, *(check_topology(meant, given) if meant else ())]
    wanted, optional = found.parameters, getattr(found, "optional", ())
    surplus = [
        Problem(key=name, required=f"only {', '.join(wanted)} with {family}", given=str(value))
        for name, value in given.items()
        if value is not None and name not in wanted
    ]
    searched = family not in FAMILIES and family != GRAPH_FAMILY
    missing = [
        _missing(name, family, given)
        for name in wanted
        if given.get(name) is None and name not in optional and not searched
    ]
    return missing + surplus or found.check(parameters(family, given))


def _missing(name: str, family: str, given: Mapping[str, int | str | None]) -> Problem:
    """The problem of a parameter that is not given; of a degree, with those that there are."""
    required, kind, todo = f"{_VALUES[name]}, {family} needs it", str(given.get("supernode")), ""
    if name == "degree" and kind in SUPERNODE_KINDS:
        required = f"{SUPERNODE_KINDS[kind].requirement} for {kind}"
        todo = "such as {}, {} or {}".format(*islice(filter(partial(exists, kind), count(1)), 3))
    return Problem(key=name, required=required, given="none", todo=todo)


def _meant(family: str, given: Mapping[str, int | str | None]) -> str:
    """A known family: this one, else one of a similar name, else one with these parameters."""
    words = {name for name, value in given.items() if value is not None}
    alike = (name for name, known in FAMILIES.items() if set(known.parameters) == words)
    if family_named(family):
        return family
    return nearest(family, known_families()) or next(alike, "")


def likely(family: str, given: Mapping[str, int | str | None]) -> tuple[Family, Parameters] | None:
    """The topology that was likely meant: a similar family, the next larger q; None if unclear.

    With it, sizes in the rest of the spec can be checked although the topology is wrong.
    """
    meant, q = _meant(family, given), given.get("q")
    found = family_named(meant)
    if found is None:
        return None
    likely = [{**given}]
    if type(q) is int and 2 <= q <= LARGEST_Q:
        likely.append({**given, "q": prime_powers_near(q)[1]})
    elif "q" in found.parameters:
        return None
    for values in likely:
        if not check_topology(meant, values):
            return found, parameters(meant, values)
    return None


def parameters(family: str, given: Mapping[str, int | str | None]) -> Parameters:
    """The given values that are parameters of the family."""
    found = family_named(family)
    values = {name: given.get(name) for name in (found.parameters if found else ())}
    return {name: value for name, value in values.items() if value is not None}


def hierarchy(parameters: Parameters) -> int:
    """The number of vertices in a supernode, by formula; 1 in a family without supernodes."""
    if "supernode" not in parameters:
        return 1
    found = shape(str(parameters["supernode"]), int(parameters["degree"]))
    return found.order if found else 1


def edge_blocks(family: str, given: Mapping[str, int | str | None]) -> Iterator[NDArray[np.int32]]:
    """int32[n, 2]: the edges of `build_topology`, block by block; PolarFly's are not held together.

    Raises:
        InputError: an unknown family or wrong parameters; all problems at once.
    """
    if not isinstance(FAMILIES.get(family), PolarFly):
        return build_topology(family, given).graph.edge_blocks()
    if problems := check_topology(family, given):
        raise InputError(problems)
    return polarfly.edge_blocks(int(parameters(family, given)["q"]))


def build_topology(family: str, given: Mapping[str, int | str | None]) -> Topology:
    """The topology of this family with these parameters.

    Raises:
        InputError: an unknown family or wrong parameters; all problems at once.
    """
    found = family_named(family)
    if (problems := check_topology(family, given)) or found is None:
        raise InputError(problems)
    return found.build(parameters(family, given))
