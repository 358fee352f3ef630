"""Topologies by name: a family and its parameters, from a spec or the command line.

A new family is an entry in `_ALL`, and one for its routes in `ROUTES_OF_FAMILY` of
`compilers/routing/routes_by_family.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import count, islice

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

_VALUES = {
    "q": "a prime power",
    "supernode": f"one of {', '.join(SUPERNODE_KINDS)}",
    "degree": "the supernode's degree",
}


def check_topology(family: str, given: Mapping[str, int | str | None]) -> list[Problem]:
    """Problems of a family's name and parameters; each key is `family` or the parameter."""
    if family not in FAMILIES:
        todo = _nearest_family(family)
        wrong = Problem(f"one of {', '.join(FAMILIES)}", family, todo, key="family")
        meant = _meant(family, given)
        return [wrong, *(check_topology(meant, given) if meant else ())]
    wanted = FAMILIES[family].parameters
    missing = [_missing(name, family, given) for name in wanted if given.get(name) is None]
    surplus = [
        Problem(key=name, required=f"only {', '.join(wanted)} with {family}", given=str(value))
        for name, value in given.items()
        if value is not None and name not in wanted
    ]
    return missing + surplus or FAMILIES[family].check(parameters(family, given))


def _missing(name: str, family: str, given: Mapping[str, int | str | None]) -> Problem:
    """The problem of a parameter that is not given; of a degree, with those that there are."""
    required, kind, todo = f"{_VALUES[name]}, {family} needs it", str(given.get("supernode")), ""
    if name == "degree" and kind in SUPERNODE_KINDS:
        required = f"{SUPERNODE_KINDS[kind].requirement} for {kind}"
        todo = "such as {}, {} or {}".format(*islice(filter(partial(exists, kind), count(1)), 3))
    return Problem(key=name, required=required, given="none", todo=todo)


def _nearest_family(family: str) -> str:
    """The family that was likely meant, and what one is good for that is only compared with."""
    from compilers.topology.baselines import BASELINES

    near = family if family in BASELINES else nearest(family, [*FAMILIES, *BASELINES])
    if near in BASELINES:
        return f"{near} is for comparison only: polarfab analyse {near}"
    return f"did you mean {near}?" if near else "polarfab design lists fabrics of each"


def _meant(family: str, given: Mapping[str, int | str | None]) -> str:
    """A known family: this one, else one of a similar name, else one with these parameters."""
    words = {name for name, value in given.items() if value is not None}
    alike = (name for name, known in FAMILIES.items() if set(known.parameters) == words)
    return family if family in FAMILIES else nearest(family, FAMILIES) or next(alike, "")


def likely(family: str, given: Mapping[str, int | str | None]) -> tuple[Family, Parameters] | None:
    """The topology that was likely meant: a similar family, the next larger q; None if unclear.

    With it, sizes in the rest of the spec can be checked although the topology is wrong.
    """
    meant, q = _meant(family, given), given.get("q")
    if not meant or type(q) is not int or not 2 <= q <= LARGEST_Q:
        return None
    for values in ({**given}, {**given, "q": prime_powers_near(q)[1]}):
        if not check_topology(meant, values):
            return FAMILIES[meant], parameters(meant, values)
    return None


def parameters(family: str, given: Mapping[str, int | str | None]) -> Parameters:
    """The given values that are parameters of the family."""
    values = {name: given.get(name) for name in FAMILIES[family].parameters}
    return {name: value for name, value in values.items() if value is not None}


def hierarchy(family: str, parameters: Parameters) -> int:
    """The number of vertices in a supernode, by formula; 1 in a family without supernodes."""
    if "supernode" not in FAMILIES[family].parameters:
        return 1
    found = shape(str(parameters["supernode"]), int(parameters["degree"]))
    return found.order if found else 1


def build_any(family: str, given: Mapping[str, int | str | None]) -> Topology:
    """The topology of this family, baselines included, with these parameters.

    Raises:
        InputError: an unknown family or wrong parameters; all problems at once.
    """
    from compilers.topology.baselines import BASELINES

    if family in FAMILIES:
        return build_topology(family, given)
    if family not in BASELINES:
        known = [*FAMILIES, *BASELINES]
        todo = did_you_mean(
            family, known, "name a family and its parameters, not a file or a build"
        )
        required = f"one of {', '.join(known)}"
        raise InputError.of(key="family", required=required, given=family, todo=todo)
    baseline = BASELINES[family]
    values = {name: value for name, value in given.items() if value is not None}
    surplus = [
        Problem(key=name, required=f"only {', '.join(baseline.parameters)}", given=str(value))
        for name, value in values.items()
        if name not in baseline.parameters
    ]
    if problems := surplus or baseline.check(values):
        raise InputError(problems)
    return baseline.build(values)


def build_topology(family: str, given: Mapping[str, int | str | None]) -> Topology:
    """The topology of this family with these parameters.

    Raises:
        InputError: an unknown family or wrong parameters; all problems at once.
    """
    if problems := check_topology(family, given):
        raise InputError(problems)
    return FAMILIES[family].build(parameters(family, given))
