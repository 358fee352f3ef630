"""Balances by name: how hosts' packets are spread, as `routing.balance` says it.

A balance is a file of `compilers/balances/`, whose name is the balance's, or a class that a package
registers by an entry point of the group `polarfab.balances`. There is no list to add to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from compilers.entry_points import BALANCES, broken, load, package, registered
from compilers.spec.features import INGRESS, WEIGHTS
from compilers.topology.families import family_of
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Parameters, Topology
from inventory.problems import Finding, InputError

_FOLDER = Path(__file__).parents[1] / "balances"
_PACKAGE = f"{__package__.removesuffix('spec')}balances"
_FILES = {path.stem.replace("_", "-"): path.stem for path in _FOLDER.glob("[a-z]*.py")}
ROUTING = ("routing", "balance")


class Balance:
    """A balance; what is not said here is that of Compact Valiant.

    name: in a spec. place: in lists. needs: abilities of a target (`compilers.spec.features`).
    alternates: whether classes have other ports than the minimal one for hosts' packets. shortest:
    these are the other shortest paths, and nothing longer; they may be shared at every hop. marks:
    packets that leave by an alternate are marked. carries: packets carry an intermediate.
    every_alternate: classes have all alternates that serve.
    figures: what every host can send in `compilers.spec.balance_words.FIGURES_OF`, by the words of
    the policy after the name: per cent of its link's rate under uniform traffic, and the least of
    tornado, a random permutation and the longest one. A test measures them again.
    """

    name: str
    place = 100
    needs: frozenset[str] = frozenset({WEIGHTS, INGRESS})
    alternates = True
    shortest = False
    marks = False
    carries = False
    every_alternate = True
    figures: Mapping[str, tuple[int, int]] = MappingProxyType({})

    @property
    def spreads(self) -> bool:
        """Whether packets of a pair take several paths."""
        return self.alternates or self.carries

    def problems(self, routing: Any) -> Iterator[Finding]:  # noqa: ARG002
        """Words of the policy, a `RoutingSpec`, that do not go with it."""
        return iter(())

    def unfit(
        self,
        routing: Any,
        family: Family,
        parameters: Parameters,
    ) -> Iterator[Finding]:
        """Why a member of a family cannot have it, by what the spec says."""
        del routing, family, parameters
        return iter(())

    def placed(self, topology: Topology, wiring: Any) -> Iterator[Finding]:  # noqa: ARG002
        """Why this fabric cannot have it, as it is wired (`compilers.wiring.wiring.Wiring`)."""
        return iter(())

    def fitting(self, traffic: str, family: Family, topology: Topology) -> str | None:  # noqa: ARG002
        """The words after its name with which it fits a traffic of
        `compilers.spec.balance_words.TRAFFIC` in a whole fabric; None: another fits better.
        """
        return None

    def chosen(self, tables: Any, topology: Topology, wiring: Any) -> Any:  # noqa: ARG002
        """`Tables` with what it changes of those with alternates and protection."""
        return tables


@cache
def balance_named(name: str) -> Balance:
    """The balance of a name, polarfab's own before those of packages.

    Raises:
        InputError: there is none, two packages register it, or the one that does is broken.
    """
    if name in _FILES:  # reading what is installed takes 20 ms
        module = import_module(f"{_PACKAGE}.{_FILES[name]}")
        kinds = (value for value in vars(module).values() if isinstance(value, type))
        own = (k for k in kinds if issubclass(k, Balance) and k.__module__ == module.__name__)
        return _made(next(own))
    entries = registered(BALANCES).get(name, ())
    if len(entries) != 1:
        required, given = f"one of {', '.join(balance_names())}", name
        if entries:
            required = "one package with that balance"
            given = " and ".join(map(package, entries))
        raise InputError.of(required, given, key="routing.balance")
    kind = load(entries[0])
    if not (isinstance(kind, type) and issubclass(kind, Balance)):
        raise broken(entries[0], f"{entries[0].value} is no subclass of polarfab.Balance")
    if getattr(kind, "name", "") != name:
        raise broken(entries[0], f"the class calls itself {getattr(kind, 'name', 'nothing')}")
    return _made(kind)


def balance_or_plain(name: str) -> Balance:
    """The same; where none of that name is installed, one that says no more of itself."""
    known = name in _FILES or name in registered(BALANCES)
    return balance_named(name) if known else Balance()


_KINDS: dict[type[Balance], Balance] = {}


def _made(kind: type[Balance]) -> Balance:
    return _KINDS.setdefault(kind, kind())


def own_balances() -> list[str]:
    """The names of polarfab's own."""
    return sorted(_FILES, key=lambda name: balance_named(name).place)


def balance_names() -> list[str]:
    """The names of all that are installed."""
    return own_balances() + sorted({*registered(BALANCES)} - {*_FILES})


def measured_balances() -> dict[str, tuple[int, int]]:
    """The figures of all balances, by their words in a policy."""
    return {
        f"balance: {name}{words}": found
        for name in own_balances()
        for words, found in balance_named(name).figures.items()
    }


def balance_for(traffic: str, topology: Topology) -> str:
    """The value of `routing:` that fits a traffic in a whole fabric, within its braces.

    Args:
        traffic: one of `compilers.spec.balance_words.TRAFFIC`.
        topology: the fabric.
    """
    family = family_of(topology.family)
    names = reversed(own_balances())  # those that ask most of a fabric first
    found = ((name, balance_named(name).fitting(traffic, family, topology)) for name in names)
    return next(f"balance: {name}{words}" for name, words in found if words is not None)
