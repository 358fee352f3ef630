"""Topologies by name: a family and its parameters, from a spec or the command line.

A family is a file of `compilers/families/`, whose name is the family's, or a class that a package
registers by an entry point of the group `polarfab.families`. There is no list to add to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compilers.entry_points import FAMILIES as GROUP
from compilers.entry_points import broken, load, package, registered, shipped
from compilers.topology.family import Family
from compilers.topology.field import LARGEST_Q, prime_powers_near
from compilers.topology.labelled_graph import Parameters, Topology
from compilers.topology.supernodes import SUPERNODE_KINDS, exists
from inventory.problems import InputError, Problem, did_you_mean, nearest, not_among

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GRAPH_FAMILY = "graph"
"""The family of one graph, which a file describes."""

_FOLDER = Path(__file__).parents[1] / "families"
_PACKAGE = f"{__package__.removesuffix('topology')}families"
_FILES = {path.stem.replace("_", "-"): path.stem for path in _FOLDER.glob("[a-z]*.py")}
_VALUES = {
    "q": "a prime power",
    "supernode": f"one of {', '.join(SUPERNODE_KINDS)}",
    "degree": "the supernode's degree",
    "file": "the file of a graph",
}


def family_named(name: str) -> Family | None:
    """The family of a name, polarfab's own before those of packages; None where there is none.

    Raises:
        InputError: two packages register it, or the one that does is broken.
    """
    if name in _FILES:  # reading what is installed takes 20 ms
        return _made(_own(_FILES[name]))
    if value := shipped(GROUP).get(name):
        from importlib.metadata import EntryPoint

        return _of_package(EntryPoint(name, value, GROUP))
    entries = registered(GROUP).get(name, ())
    if len(entries) > 1:
        given, todo = " and ".join(map(package, entries)), "uninstall what you do not need"
        raise InputError.of("one package with that family", given, todo, key=f"family {name}")
    return _of_package(entries[0]) if entries else None


def family_of(name: str) -> Family:
    """The same; of a topology that is no family's member any more, one that can do no more than
    any graph.
    """
    return family_named(name) or _ANY


@cache
def _own(module: str) -> type[Family]:
    """The class of a file of `compilers/families/`: its own, or the only one that it names."""
    found = import_module(f"{_PACKAGE}.{module}")
    kinds = [kind for kind in vars(found).values() if isinstance(kind, type)]
    own = [kind for kind in kinds if issubclass(kind, Family) and kind.__module__ == found.__name__]
    chosen: type[Family] = own[0] if own else next(k for k in kinds if issubclass(k, Family))
    return chosen


def _of_package(entry: EntryPoint) -> Family:
    kind = load(entry)
    if not (isinstance(kind, type) and issubclass(kind, Family)):
        raise broken(entry, f"{entry.value} is no subclass of polarfab.Family")
    if getattr(kind, "name", "") != entry.name:
        raise broken(entry, f"the class calls itself {getattr(kind, 'name', 'nothing')}")
    if lacking := sorted(kind.__abstractmethods__):
        raise broken(entry, f"{entry.value} does not say {' and '.join(lacking)}")
    return _made(kind)


_KINDS: dict[type[Family], Family] = {}


def _made(kind: type[Family]) -> Family:
    return _KINDS.setdefault(kind, kind())


class _NoMember(Family):
    """What there is of a topology that is no family's member, such as an expanded one."""

    def order(self, parameters: Parameters) -> int:
        """There is no formula."""
        raise LookupError(f"no family has the parameters {parameters}")

    def build(self, parameters: Parameters) -> Topology:
        """There is no construction."""
        raise LookupError(f"no family has the parameters {parameters}")


_ANY = _NoMember()


class Families(Mapping[str, Family]):
    """Families by name, each imported when it is asked for.

    compared: those that the papers compare with, or the others, but for that of a file.
    """

    def __init__(self, compared: bool) -> None:
        self._compared = compared

    def __getitem__(self, name: str) -> Family:
        found = family_named(name)
        if found is None or found.described or found.compared != self._compared:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        names = [name for name in {*_FILES, *registered(GROUP)} if self.get(name)]
        return iter(sorted(names, key=lambda name: (self[name].place, name != self[name].name)))

    def __len__(self) -> int:
        return len(list(iter(self)))


FAMILIES, BASELINES = Families(compared=False), Families(compared=True)


def known_families() -> list[str]:
    """The names of all families."""
    return [*FAMILIES, GRAPH_FAMILY, *BASELINES]


def vertex_names(family: str, given: Mapping[str, int | str | None]) -> tuple[str, ...]:
    """The names that a file gives its vertices; none in other families."""
    return family_of(family).vertex_names(parameters(family, given))


def check_topology(family: str, given: Mapping[str, int | str | None]) -> list[Problem]:
    """Problems of a family's name and parameters; each key is `family` or the parameter."""
    found = family_named(family)
    if found is None:
        todo = "name a family and its parameters, not a file or a build"
        wrong = not_among(family, known_families(), "family", todo)
        meant = _meant(family, given)
        return [wrong, *(check_topology(meant, given) if meant else ())]
    wanted, optional = found.parameters, found.optional
    surplus = [
        Problem(
            key=name,
            required=f"only {', '.join(wanted)} with {family}",
            given=str(value),
            todo=did_you_mean(name, [word for word in wanted if given.get(word) is None]),
        )
        for name, value in given.items()
        if value is not None and name not in wanted
    ]
    missing = [
        _missing(name, family, given)
        for name in wanted
        if given.get(name) is None and name not in optional and not found.compared
    ]
    values = parameters(family, given)
    if early := missing + surplus or _beyond_reason(values):
        return early
    return found.check(values) or _too_many(found, values)


MOST_VALUE, MOST_SWITCHES = 10**6, 1 << 27
"""The largest parameter, and the most switches, that any machine could hold the graph of."""


def _beyond_reason(values: Parameters) -> list[Problem]:
    """Parameters that are refused before anything is calculated from them."""
    numbers = {
        name: max((int(word[:30]) for word in re.findall(r"[0-9]+", str(value))), default=0)
        for name, value in values.items()
        if name not in ("seed", "file", "supernode", "nodes")
    }
    return [
        Problem(f"at most {MOST_VALUE:,}", str(values[name])[:60], key=name)
        for name, number in numbers.items()
        if number > MOST_VALUE
    ]


def _too_many(family: Family, values: Parameters) -> list[Problem]:
    """A graph that is too large for any machine, by the formula of its order."""
    if family.described or (order := family.order(values)) <= MOST_SWITCHES:
        return []
    key = "nodes" if "nodes" in values else next(iter(values), "family")
    required = f"a graph of at most {MOST_SWITCHES:,} switches"
    return [Problem(required, f"one of {order:,}", "take smaller parameters", key=key)]


def _missing(name: str, family: str, given: Mapping[str, int | str | None]) -> Problem:
    """The problem of a parameter that is not given; of a degree, with those that there are."""
    required, kind, todo = (
        f"{_VALUES.get(name, 'a value')}, {family} needs it",
        str(given.get("supernode")),
        "",
    )
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


def family_before(topology: Topology) -> Family:
    """The family of a topology, or of that which it was before it was expanded."""
    return family_of(topology.grown_from or topology.family)


def require_family(topology: Topology) -> None:
    """Pass when the family of a topology is installed, so that its graph can be built again.

    Raises:
        InputError: it is not.
    """
    name = topology.grown_from or topology.family
    if family_named(name) is None:
        required = f"family {name}, whose graph the fabric is compared with"
        todo = "install the package that brings the family"
        raise InputError.of(required, "no package that has it", todo, key="topology.family")


def edge_blocks(family: str, given: Mapping[str, int | str | None]) -> Iterator[NDArray[np.int32]]:
    """int32[n, 2]: the edges of `build_topology`, block by block; PolarFly's are not held together.

    Raises:
        InputError: an unknown family or wrong parameters; all problems at once.
    """
    if (problems := check_topology(family, given)) or not (found := family_named(family)):
        raise InputError(problems)
    return found.edge_blocks(parameters(family, given))


def build_topology(family: str, given: Mapping[str, int | str | None]) -> Topology:
    """The topology of this family with these parameters.

    Raises:
        InputError: an unknown family or wrong parameters; all problems at once.
    """
    found = family_named(family)
    if (problems := check_topology(family, given)) or found is None:
        raise InputError(problems)
    return found.build(parameters(family, given))
