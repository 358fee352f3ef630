"""The base class of all balances, and balances by name.

A *balance* is a load-balancing rule, a plug-in: it says how packets from hosts are spread over the
minimal and alternate paths. `routing.balance` in fabric.yaml names it. The compiler calls the
methods of a `Balance` in this order:

1. `problems` and `unfit` while it checks fabric.yaml;
2. `placed` when cables are known;
3. `chosen`, which sets the weights in the tables.

`polarfab init` calls `fitting`, which answers whether the balance suits a kind of traffic.

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

from compilers.entry_points import BALANCES, broken_entry_point, load, package, registered
from compilers.spec.forwarding import Forwarding
from compilers.topology.families import family_of
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Parameters, Topology
from inventory.problems import Finding, InputError

_FOLDER = Path(__file__).parents[1] / "balances"
"""The folder of polarfab's own balances."""
_PACKAGE = f"{__package__.removesuffix('spec')}balances"
"""The package of this folder."""
_FILES = {path.stem.replace("_", "-"): path.stem for path in _FOLDER.glob("[a-z]*.py")}
"""The module of each balance of polarfab's own, by the balance's name."""
ROUTING = ("routing", "balance")
"""The key of a balance, for findings."""
NO_OTHER_KEYS = ""
"""What a policy says after the name of the balance, where the name is the whole policy."""


class HostThroughput(NamedTuple):
    """How much every host can send, in per cent of its link's rate."""

    uniform: float
    """Under uniform traffic."""
    random_hosts: float
    """If each host sends to one other host at random: the median of many draws."""
    guaranteed: float | None
    """Under any traffic; None where weights are fitted to the traffic."""


class Balance:
    """A balance. The defaults are those of Compact Valiant.

    Policies, wiring and tables have the type `Any` here, as their modules import this one. The
    balances themselves name the types.
    """

    name: str
    """The value of `routing.balance`."""
    place = 100
    """The rank in lists of balances, smallest first. Balances of packages come last."""
    forwarding = Forwarding(alternates="all")
    """The forwarding properties of its tables, before the other keys of a policy are added.

    Only with `alternates="shortest"` may a policy say `transit: ecmp`.
    """
    figures: Mapping[str, HostThroughput] = MappingProxyType({})
    """The throughput that was measured with this balance.

    The key is what a policy says after the name of the balance: NO_OTHER_KEYS, or text such as
    `, demand: traffic.csv`. The fabric was `compilers.spec.balance_words.FIGURES_FABRIC`. A test
    measures the figures again.
    """

    def problems(self, routing: Any) -> Iterator[Finding]:  # noqa: ARG002
        """Yield findings about values of the policy that this balance excludes.

        Called first, before the topology is known.

        Args:
            routing: the policy, a `RoutingSpec`.
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
        """Return the keys of the policy to write after the name for a kind of traffic.

        The text is NO_OTHER_KEYS, or such as `, transit: ecmp`. Return None if another balance
        suits the traffic better in this fabric.

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
        """Return the tables with the alternates and weights of this balance, and their properties.

        Called last, by `compilers.routing.balanced_tables`. The default changes nothing.

        Args:
            tables: `Tables` with the alternates and the protection of the policy.
            forwarding: the properties of these tables.
            topology: the fabric.
            wiring: its cables (`compilers.wiring.wiring.Wiring`).
        """
        return tables, forwarding


def balance_in(module: ModuleType, name: str) -> type[Balance]:
    """Return the class of the balance that a file of `compilers/balances` defines.

    A file defines one subclass of `Balance`, and may import others.

    Args:
        module: the module of the file.
        name: the name of the file, with `-` for `_`.

    Raises:
        InputError: the class has another name.
    """
    classes = (value for value in vars(module).values() if isinstance(value, type))
    balance = next(
        value
        for value in classes
        if issubclass(value, Balance) and value.__module__ == module.__name__
    )
    class_name = getattr(balance, "name", "")
    if class_name != name:
        required = f"name = {name!r}, after the file {name.replace('-', '_')}.py"
        raise InputError.of(required, repr(class_name), key=f"balance {balance.__name__}")
    return balance


@cache
def balance_named(name: str) -> Balance:
    """Return the balance of a name. Polarfab's own balances go before those of packages.

    Raises:
        InputError: there is no such balance, its class has another name than its file, two packages
            register it, or the package that does is broken.
    """
    if name not in _FILES:
        return _instance(_registered_balance(name))
    # For polarfab's own balances the list of installed packages is not read: that takes 20 ms.
    module = import_module(f"{_PACKAGE}.{_FILES[name]}")
    return _instance(balance_in(module, name))


def _registered_balance(name: str) -> type[Balance]:
    """Return the class of a balance that a package registers.

    Raises:
        InputError: no package registers it, two do, or the package that does is broken.
    """
    entries = registered(BALANCES).get(name, ())
    if len(entries) != 1:
        required, given = f"one of {', '.join(balance_names())}", name
        if entries:
            required = "one package with that balance"
            given = " and ".join(map(package, entries))
        raise InputError.of(required, given, key="routing.balance")
    loaded = load(entries[0])
    if not (isinstance(loaded, type) and issubclass(loaded, Balance)):
        raise broken_entry_point(
            entries[0], f"{entries[0].value} is no subclass of polarfab.Balance"
        )
    if getattr(loaded, "name", "") != name:
        raise broken_entry_point(
            entries[0], f"the class calls itself {getattr(loaded, 'name', 'nothing')}"
        )
    return loaded


def package_of_balance(name: str) -> str:
    """Return the package that registers a balance, for messages; "" for polarfab's own."""
    return "" if name in _FILES else package(registered(BALANCES)[name][0])


_INSTANCES: dict[type[Balance], Balance] = {}
"""The one instance of each class that was asked for."""


def _instance(balance: type[Balance]) -> Balance:
    """Return the one instance of a balance's class."""
    return _INSTANCES.setdefault(balance, balance())


def own_balances() -> list[str]:
    """Return the names of polarfab's own balances, in their order in lists."""
    return sorted(_FILES, key=lambda name: balance_named(name).place)


def own_balances_with(has_property: Callable[[Forwarding], bool]) -> list[str]:
    """Return the names of polarfab's own balances whose tables have a property."""
    return [name for name in own_balances() if has_property(balance_named(name).forwarding)]


def balance_names() -> list[str]:
    """Return the names of all installed balances."""
    return own_balances() + sorted({*registered(BALANCES)} - {*_FILES})


def measured_balances() -> dict[str, HostThroughput]:
    """Return the figures of polarfab's own balances, by the policy, such as `balance: minimal`."""
    return {
        f"balance: {name}{other_keys}": throughput
        for name in own_balances()
        for other_keys, throughput in balance_named(name).figures.items()
    }


def balance_for(traffic: str, topology: Topology) -> str:
    """Return the value of `routing:` that suits a traffic in a whole fabric, within its braces.

    Args:
        traffic: one of `compilers.spec.balance_words.TRAFFIC`.
        topology: the fabric.
    """
    family = family_of(topology.family)
    # Balances late in the list need most of a fabric, so they are asked first. The first one in the
    # list needs nothing and suits everything, so it is asked last.
    for name in reversed(own_balances()):
        other_keys = balance_named(name).fitting(traffic, family, topology)
        if other_keys is not None:
            return f"balance: {name}{other_keys}"
    raise LookupError(f"no balance suits {traffic} traffic")
