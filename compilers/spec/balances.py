"""The base class of all balances, and balances by name.

A *balance* is a load-balancing rule, a plug-in: it says how packets from hosts are spread over the
minimal and alternate paths, and `routing.balance` in fabric.yaml names it. The compiler calls its
hooks in this order: `problems` and `unfit` while it checks fabric.yaml, `placed` once cables are
known, and `chosen`, which sets the weights in the tables. `fitting` answers which balance suits a
traffic.

A balance is a file of `compilers/balances/`, whose name is the balance's, or a class that a package
registers by an entry point of the group `polarfab.balances`. There is no list to add to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

from compilers.entry_points import BALANCES, broken, load, package, registered
from compilers.spec.forwarding import Forwarding
from compilers.topology.families import family_of
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Parameters, Topology
from inventory.problems import Finding, InputError

_FOLDER = Path(__file__).parents[1] / "balances"
"""The folder of polarfab's own balances."""
_PACKAGE = f"{__package__.removesuffix('spec')}balances"
_FILES = {path.stem.replace("_", "-"): path.stem for path in _FOLDER.glob("[a-z]*.py")}
"""The module of each balance of polarfab's own, by the balance's name."""
ROUTING = ("routing", "balance")
"""The key of a balance, for findings."""


class Carried(NamedTuple):
    """The throughput of every host, in per cent of its link's rate."""

    uniform: int
    """The rate under uniform traffic."""
    random_hosts: int
    """The rate if each host sends to one other host at random: the median of many draws."""
    guaranteed: int | None
    """The rate under any traffic; None where weights are fitted to the traffic."""


class Balance:
    """A balance. The defaults are those of Compact Valiant."""

    name: str
    """The word of `routing.balance`."""
    place = 100
    """The place in lists."""
    forwarding = Forwarding(alternates="all")
    """What its tables mean before the other words of a policy are added.

    Only with `alternates="shortest"` may a policy say `transit: ecmp`.
    """
    figures: Mapping[str, Carried] = MappingProxyType({})
    """What every host can send, by the words of the policy after the name.

    In the fabric `compilers.spec.balance_words.FIGURES_OF`. A test measures the figures again.
    """

    def problems(self, routing: Any) -> Iterator[Finding]:  # noqa: ARG002
        """Yield findings about words of the policy, a `RoutingSpec`, that this balance excludes.

        Called first, before the topology is known.
        """
        return iter(())

    def unfit(
        self,
        routing: Any,
        family: Family,
        parameters: Parameters,
    ) -> Iterator[Finding]:
        """Yield reasons why a topology cannot have this balance, from family and parameters alone.

        Called before the graph is built.

        Args:
            routing: the policy, a `RoutingSpec`.
            family: of the topology.
            parameters: of the topology.
        """
        del routing, family, parameters
        return iter(())

    def placed(self, topology: Topology, wiring: Any) -> Iterator[Finding]:  # noqa: ARG002
        """Yield reasons why the cables of a fabric cannot have this balance.

        Called once nodes are placed and links are on ports, before routes are computed.

        Args:
            topology: the fabric.
            wiring: its cables (`compilers.wiring.wiring.Wiring`).
        """
        return iter(())

    def fitting(self, traffic: str, family: Family, topology: Topology) -> str | None:  # noqa: ARG002
        """Return the words of the policy, to write after the name, with which a traffic runs best.

        None if another balance suits the traffic better in this fabric.

        Args:
            traffic: one of `compilers.spec.balance_words.TRAFFIC`.
            family: of the topology.
            topology: the whole fabric.
        """
        return None

    def chosen(
        self,
        tables: Any,
        forwarding: Forwarding,
        topology: Topology,  # noqa: ARG002
        wiring: Any,  # noqa: ARG002
    ) -> tuple[Any, Forwarding]:
        """Return the tables with the alternates and weights of this balance, and what they mean.

        Called last, by `compilers.routing.balanced_tables`. The default changes nothing.

        Args:
            tables: `Tables` with the alternates and the protection of the policy.
            forwarding: what these tables mean.
            topology: the fabric.
            wiring: its cables (`compilers.wiring.wiring.Wiring`).
        """
        return tables, forwarding


def balance_in(module: ModuleType, name: str) -> type[Balance]:
    """Return the class of the balance that a file of `compilers/balances` defines.

    Args:
        module: that of the file.
        name: the file's, with `-` for `_`.

    Raises:
        InputError: the class calls itself otherwise.
    """
    classes = (value for value in vars(module).values() if isinstance(value, type))
    balance = next(
        value
        for value in classes
        if issubclass(value, Balance) and value.__module__ == module.__name__
    )
    stated = getattr(balance, "name", "")
    if stated != name:
        required = f"name = {name!r}, after the file {name.replace('-', '_')}.py"
        raise InputError.of(required, repr(stated), key=f"balance {balance.__name__}")
    return balance


@cache
def balance_named(name: str) -> Balance:
    """Return the balance of a name. Polarfab's own balances go before those of packages.

    Raises:
        InputError: there is no such balance, its class has another name than its file, two packages
            register it, or the package that does is broken.
    """
    if name in _FILES:  # first, as reading the list of installed packages takes 20 ms
        module = import_module(f"{_PACKAGE}.{_FILES[name]}")
        return _instance(balance_in(module, name))
    entries = registered(BALANCES).get(name, ())
    if len(entries) != 1:
        required, given = f"one of {', '.join(balance_names())}", name
        if entries:
            required = "one package with that balance"
            given = " and ".join(map(package, entries))
        raise InputError.of(required, given, key="routing.balance")
    loaded = load(entries[0])
    if not (isinstance(loaded, type) and issubclass(loaded, Balance)):
        raise broken(entries[0], f"{entries[0].value} is no subclass of polarfab.Balance")
    if getattr(loaded, "name", "") != name:
        raise broken(entries[0], f"the class calls itself {getattr(loaded, 'name', 'nothing')}")
    return _instance(loaded)


def package_of_balance(name: str) -> str:
    """Return the package that registers a balance, for messages; "" for polarfab's own."""
    return "" if name in _FILES else package(registered(BALANCES)[name][0])


_INSTANCES: dict[type[Balance], Balance] = {}


def _instance(balance: type[Balance]) -> Balance:
    """Return the one instance of a balance's class."""
    return _INSTANCES.setdefault(balance, balance())


def own_balances() -> list[str]:
    """Return the names of polarfab's own balances, in their order in lists."""
    return sorted(_FILES, key=lambda name: balance_named(name).place)


def own_balances_with(ability: Callable[[Forwarding], bool]) -> list[str]:
    """Return the names of polarfab's own balances whose tables have a property."""
    return [name for name in own_balances() if ability(balance_named(name).forwarding)]


def balance_names() -> list[str]:
    """Return the names of all installed balances."""
    return own_balances() + sorted({*registered(BALANCES)} - {*_FILES})


def measured_balances() -> dict[str, Carried]:
    """Return the figures of polarfab's own balances, by their words in a policy."""
    return {
        f"balance: {name}{words}": carried
        for name in own_balances()
        for words, carried in balance_named(name).figures.items()
    }


def balance_for(traffic: str, topology: Topology) -> str:
    """Return the value of `routing:` that suits a traffic in a whole fabric, within its braces.

    Args:
        traffic: one of `compilers.spec.balance_words.TRAFFIC`.
        topology: the fabric.
    """
    family = family_of(topology.family)
    # Balances that ask most of a fabric come last in lists, and are asked first.
    for name in reversed(own_balances()):
        words = balance_named(name).fitting(traffic, family, topology)
        if words is not None:
            return f"balance: {name}{words}"
    raise LookupError(f"no balance suits {traffic} traffic")
