"""Families by name, and the check of the parameters that a spec or the command line gives them.

A family is a file of `compilers/families/`, whose name is the family's, or a class that a package
registers by an entry point of the group `polarfab.families`. There is no list to add to.
`build_topology` makes the graph of a member.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compilers.entry_points import FAMILIES as GROUP
from compilers.entry_points import broken_entry_point, load, package, registered, shipped
from compilers.topology.distance import BEYOND, diameter
from compilers.topology.family import Family
from compilers.topology.field import LARGEST_Q, prime_powers_near
from compilers.topology.labelled_graph import Parameters, Topology
from compilers.topology.supernodes import SUPERNODE_KINDS, exists
from inventory.problems import InputError, Problem, did_you_mean, nearest, not_among

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

DIAMETER_CHECKED_UP_TO = 2048
"""The most vertices of a graph whose stated diameter is checked by a search, which takes 25 ms."""
MOST_VALUE = 10**6
"""The largest parameter of a graph that any machine could hold."""
MOST_SWITCHES = 1 << 27
"""The most switches of a graph that any machine could hold."""
GRAPH_FAMILY = "graph"
"""The family of one graph, which a file describes."""

_FOLDER = Path(__file__).parents[1] / "families"
"""The folder of polarfab's own families."""
_PACKAGE = f"{__package__.removesuffix('topology')}families"
"""The package of this folder."""
_FILES = {path.stem.replace("_", "-"): path.stem for path in _FOLDER.glob("[a-z]*.py")}
"""The module of each family of polarfab's own, by the family's name."""
_VALUES = {
    "q": "a prime power",
    "supernode": f"one of {', '.join(SUPERNODE_KINDS)}",
    "degree": "the supernode's degree",
    "file": "the file of a graph",
}
"""What a parameter is, for messages that it is missing."""


def family_named(name: str) -> Family | None:
    """Return the family of a name, None where there is none.

    Polarfab's own families go before those of packages.

    Raises:
        InputError: two packages register the name, or the package that does is broken.
    """
    if name in _FILES:  # first, as reading the list of installed packages takes 20 ms
        return _instance(_class_in_file(_FILES[name]))
    if value := shipped(GROUP).get(name):
        from importlib.metadata import EntryPoint

        return _of_package(EntryPoint(name, value, GROUP))
    entries = registered(GROUP).get(name, ())
    if len(entries) > 1:
        given, todo = " and ".join(map(package, entries)), "uninstall what you do not need"
        raise InputError.of("one package with that family", given, todo, key=f"family {name}")
    return _of_package(entries[0]) if entries else None


def family_of(name: str) -> Family:
    """Return the family of a name, or a family without formulas if there is no such family.

    The topology may be no member of a family any more, such as an expanded PolarFly.

    Raises:
        InputError: two packages register the name, or the package that does is broken.
    """
    return family_named(name) or _NO_MEMBER


@cache
def _class_in_file(module: str) -> type[Family]:
    """Return the family's class that a file of `compilers/families/` defines, or else imports."""
    imported = import_module(f"{_PACKAGE}.{module}")
    classes = [
        value
        for value in vars(imported).values()
        if isinstance(value, type) and issubclass(value, Family)
    ]
    defined = [family for family in classes if family.__module__ == imported.__name__]
    return (defined or classes)[0]


def _of_package(entry: EntryPoint) -> Family:
    """Return the family that another package registers.

    Raises:
        InputError: the package is broken, or what it registers is no such family.
    """
    family = load(entry)
    if not (isinstance(family, type) and issubclass(family, Family)):
        raise broken_entry_point(entry, f"{entry.value} is no subclass of polarfab.Family")
    if getattr(family, "name", "") != entry.name:
        raise broken_entry_point(
            entry, f"the class calls itself {getattr(family, 'name', 'nothing')}"
        )
    if lacking := sorted(family.__abstractmethods__):
        raise broken_entry_point(entry, f"{entry.value} does not say {' and '.join(lacking)}")
    return _instance(family)


_INSTANCES: dict[type[Family], Family] = {}
"""The one instance of each family's class."""


def _instance(family: type[Family]) -> Family:
    """Return the one instance of a family's class."""
    return _INSTANCES.setdefault(family, family())


class _NoMember(Family):
    """Stands for the family of a topology that is no family's member, such as an expanded one."""

    def order(self, parameters: Parameters) -> int:
        """Refuse, as there is no formula."""
        raise LookupError(f"no family has the parameters {parameters}")

    def build(self, parameters: Parameters) -> Topology:
        """Refuse, as there is no construction."""
        raise LookupError(f"no family has the parameters {parameters}")


_NO_MEMBER = _NoMember()
"""The family without formulas."""


class Families(Mapping[str, Family]):
    """Families by name, each imported when it is read.

    The family that a file describes (`graph`) is not among them.
    """

    def __init__(self, compared: bool) -> None:
        """List families.

        Args:
            compared: True for the families that the papers compare with, False for all others.
        """
        self._compared = compared

    def __getitem__(self, name: str) -> Family:
        family = family_named(name)
        if family is None or family.described or family.compared != self._compared:
            raise KeyError(name)
        return family

    def __iter__(self) -> Iterator[str]:
        names = [name for name in {*_FILES, *registered(GROUP)} if self.get(name)]
        return iter(sorted(names, key=lambda name: (self[name].place, name != self[name].name)))

    def __len__(self) -> int:
        return len(list(iter(self)))


FAMILIES, BASELINES = Families(compared=False), Families(compared=True)
"""The families by name: those of fabrics, and with them those that papers compare with."""


def known_families() -> list[str]:
    """Return the names of all families."""
    return [*FAMILIES, GRAPH_FAMILY, *BASELINES]


def vertex_names(family: str, arguments: Mapping[str, int | str | None]) -> tuple[str, ...]:
    """Return the names that a graph's file gives the vertices, () in other families."""
    return family_of(family).vertex_names(parameters(family, arguments))


def check_topology(family: str, arguments: Mapping[str, int | str | None]) -> list[Problem]:
    """Return the problems of a family's name and parameters, [] for a member of the family.

    The key of each problem is `family` or the parameter.

    Args:
        family: the name.
        arguments: values by the names of parameters, None for values that are left out.
    """
    member_of = family_named(family)
    if member_of is None:
        todo = "name a family and its parameters, not a file or a build"
        unknown = not_among(family, known_families(), "family", todo)
        likely_name = _likely_name(family, arguments)
        return [unknown, *(check_topology(likely_name, arguments) if likely_name else ())]
    problems = _missing_values(member_of, family, arguments) + _surplus_values(
        member_of, family, arguments
    )
    values = parameters(family, arguments)
    return (
        problems
        or too_large_values(values)
        or member_of.check(values)
        or _too_many(member_of, values)
    )


def _missing_values(
    member_of: Family, name: str, arguments: Mapping[str, int | str | None]
) -> list[Problem]:
    """Return a problem for each parameter of a family that is not given; name: the family's."""
    if member_of.compared:
        return []
    return [
        _missing_parameter(parameter, name, arguments)
        for parameter in member_of.parameters
        if arguments.get(parameter) is None and parameter not in member_of.optional
    ]


def _surplus_values(
    member_of: Family, name: str, arguments: Mapping[str, int | str | None]
) -> list[Problem]:
    """Return a problem for each argument that is no parameter; name: the family's."""
    not_given = [key for key in member_of.parameters if arguments.get(key) is None]
    required = f"only {', '.join(member_of.parameters)} with {name}"
    return [
        Problem(required, str(value), did_you_mean(key, not_given), key=key)
        for key, value in arguments.items()
        if value is not None and key not in member_of.parameters
    ]


def too_large_values(values: Parameters) -> list[Problem]:
    """Return problems of parameters that are so large that nothing is calculated from them."""
    problems = []
    for name, value in values.items():
        if name in ("seed", "file", "supernode", "nodes"):
            continue
        digits = re.findall(r"[0-9]+", str(value))
        largest = max((int(word[:30]) for word in digits), default=0)
        if largest > MOST_VALUE:
            problems.append(Problem(f"at most {MOST_VALUE:,}", str(value)[:60], key=name))
    return problems


def _too_many(family: Family, values: Parameters) -> list[Problem]:
    """Return the problem of a graph with more switches than any machine could hold."""
    if family.described:
        return []
    order = family.order(values)
    if order <= MOST_SWITCHES:
        return []
    key = "nodes" if "nodes" in values else next(iter(values), "family")
    required = f"a graph of at most {MOST_SWITCHES:,} switches"
    return [Problem(required, f"one of {order:,}", "take smaller parameters", key=key)]


def _missing_parameter(
    name: str, family: str, arguments: Mapping[str, int | str | None]
) -> Problem:
    """Return the problem of a missing parameter; for a supernode's degree, with examples."""
    required = f"{_VALUES.get(name, 'a value')}, {family} needs it"
    kind, todo = str(arguments.get("supernode")), ""
    if name == "degree" and kind in SUPERNODE_KINDS:
        required = f"{SUPERNODE_KINDS[kind].requirement} for {kind}"
        degrees = (degree for degree in count(1) if exists(kind, degree))
        todo = f"such as {next(degrees)}, {next(degrees)} or {next(degrees)}"
    return Problem(key=name, required=required, given="none", todo=todo)


def _likely_name(family: str, arguments: Mapping[str, int | str | None]) -> str:
    """Return the name of the family that was likely meant, "" if that is unclear.

    This family if it exists, else one with a similar name, else one with these parameters.
    """
    if family_named(family):
        return family
    names = {name for name, value in arguments.items() if value is not None}
    same_parameters = (
        name for name, candidate in FAMILIES.items() if set(candidate.parameters) == names
    )
    return nearest(family, known_families()) or next(same_parameters, "")


def likely_family(
    family: str, arguments: Mapping[str, int | str | None]
) -> tuple[Family, Parameters] | None:
    """Return the family and parameters that were likely meant, None if that is unclear.

    This is a family of a similar name, with the next larger q if there is none for this q. With
    these, sizes in the rest of a spec can be checked although its topology is wrong.
    """
    name, q = _likely_name(family, arguments), arguments.get("q")
    named = family_named(name)
    if named is None:
        return None
    candidates = [{**arguments}]
    if type(q) is int and 2 <= q <= LARGEST_Q:
        candidates.append({**arguments, "q": prime_powers_near(q)[1]})
    elif "q" in named.parameters:
        return None
    for values in candidates:
        if not check_topology(name, values):
            return named, parameters(name, values)
    return None


def parameters(family: str, arguments: Mapping[str, int | str | None]) -> Parameters:
    """Return the arguments that are parameters of the family, without those that are None."""
    named = family_named(family)
    values = {name: arguments.get(name) for name in (named.parameters if named else ())}
    return {name: value for name, value in values.items() if value is not None}


def family_before(topology: Topology) -> Family:
    """Return the family of a topology; of an expanded one, the family that it has grown from."""
    return family_of(topology.grown_from or topology.family)


def require_family(topology: Topology) -> None:
    """Pass when the family of a topology is installed, so that its graph can be built again.

    Raises:
        InputError: no installed package has the family.
    """
    name = topology.grown_from or topology.family
    if family_named(name) is None:
        required = f"family {name}, whose graph the fabric is compared with"
        todo = "install the package that brings the family"
        raise InputError.of(required, "no package that has it", todo, key="topology.family")


def edge_blocks(
    family: str, arguments: Mapping[str, int | str | None]
) -> Iterator[NDArray[np.int32]]:
    """Yield the edges of `build_topology` in blocks, int32[n, 2] each.

    A family such as PolarFly computes each block by itself, so that memory stays small.

    Raises:
        InputError: an unknown family or wrong parameters; all problems at once.
    """
    named = family_named(family)
    if (problems := check_topology(family, arguments)) or named is None:
        raise InputError(problems)
    return named.edge_blocks(parameters(family, arguments))


def build_topology(family: str, arguments: Mapping[str, int | str | None]) -> Topology:
    """Build the topology of a family with these parameters.

    Raises:
        InputError: an unknown family or wrong parameters, all problems at once; or the family
            states another diameter than its graph has, in a graph of up to
            `DIAMETER_CHECKED_UP_TO` vertices.

    >>> build_topology("polarfly", {"q": 7})
    <Topology polarfly q=7: 57 vertices, 224 edges>
    """
    named = family_named(family)
    if (problems := check_topology(family, arguments)) or named is None:
        raise InputError(problems)
    topology = named.build(parameters(family, arguments))
    if topology.graph.order <= DIAMETER_CHECKED_UP_TO:
        measured = diameter(topology.graph)
        if measured not in (topology.diameter, BEYOND):
            required = f"the diameter of the graph that it builds, {measured}"
            raise InputError.of(required, str(topology.diameter), key=f"family {family}")
    return topology
