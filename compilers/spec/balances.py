"""Balances by name: how hosts' packets are spread, as `routing.balance` says it.

A balance is a file of `compilers/balances/`, whose name is the balance's, or a class that a package
registers by an entry point of the group `polarfab.balances`. There is no list to add to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from compilers.entry_points import BALANCES, broken, load, package, registered
from compilers.spec.forwarding import Forwarding
from compilers.topology.families import family_of
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Parameters, Topology
from inventory.problems import Finding, InputError

_FOLDER = Path(__file__).parents[1] / "balances"
_PACKAGE = f"{__package__.removesuffix('spec')}balances"
_FILES = {path.stem.replace("_", "-"): path.stem for path in _FOLDER.glob("[a-z]*.py")}
ROUTING = ("routing", "balance")


class Carried(NamedTuple):
    """What every host can send, in per cent of its link's rate."""

    uniform: int
    """Under uniform traffic."""
    random_hosts: int
    """If each host sends to one other drawn by chance: the median of many draws."""
    guaranteed: int | None
    """Under any traffic; None where weights are fitted to each."""


class Balance:
    """A balance; what a subclass does not say is that of Compact Valiant."""

    name: str
    """The word of `routing.balance`."""
    place = 100
    """The place in lists."""
    forwarding = Forwarding(alternates="all")
    """What its tables mean before the other words of a policy are added.

    Only with `alternates="shortest"` may a policy say `transit: ecmp`.
    """
    figures: Mapping[str, Carried] = MappingProxyType({})
    """What every host can send in `compilers.spec.balance_words.FIGURES_OF`, by the words of the
    policy after the name. A test measures them again.
    """

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

    def chosen(
        self,
        tables: Any,
        forwarding: Forwarding,
        topology: Topology,  # noqa: ARG002
        wiring: Any,  # noqa: ARG002
    ) -> tuple[Any, Forwarding]:
        """The tables of a fabric, and what they mean.

        Args:
            tables: `Tables` with the alternates and the protection of the policy.
            forwarding: what these mean.
            topology: the fabric.
            wiring: its cables (`compilers.wiring.wiring.Wiring`).
        """
        return tables, forwarding


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


def package_of_balance(name: str) -> str:
    """The package that registers a balance, for messages; "" for one of polarfab's own."""
    return "" if name in _FILES else package(registered(BALANCES)[name][0])


_KINDS: dict[type[Balance], Balance] = {}


def _made(kind: type[Balance]) -> Balance:
    return _KINDS.setdefault(kind, kind())


def own_balances() -> list[str]:
    """The names of polarfab's own."""
    return sorted(_FILES, key=lambda name: balance_named(name).place)


def own_balances_with(ability: Callable[[Forwarding], bool]) -> list[str]:
    """The names of those of polarfab's own whose tables can do something."""
    return [name for name in own_balances() if ability(balance_named(name).forwarding)]


def balance_names() -> list[str]:
    """The names of all that are installed."""
    return own_balances() + sorted({*registered(BALANCES)} - {*_FILES})


def measured_balances() -> dict[str, Carried]:
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
