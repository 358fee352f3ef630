"""Additions: configuration that a package adds to what the target of a system renders.

Lossless Ethernet and SRv6 on SONiC are additions. A package registers one by an entry point of the
group `polarfab.additions`, an extension of polarfab by `ENTRY_POINTS` in its `__init__.py`; its
name is SYSTEM.WORD. An option of the target asks for it. The target's class then calls the methods
here, and prints what `Addition.printed` returns, in a form that the folder of the system defines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from compilers.entry_points import ADDITIONS, broken_entry_point, load, registered
from compilers.readers.emitted_report import DifferenceList
from compilers.targets.capabilities import Capabilities
from compilers.targets.options import OFF, Chosen, Options

if TYPE_CHECKING:
    from compilers.tables.build import Build

Routers = TypeVar("Routers")
"""All routers of a build, in the form of the system's class."""
Printed = TypeVar("Printed")
"""What the system prints for an addition at one switch, such as `EosStatements`."""


class Addition(ABC, Generic[Routers, Printed]):
    """Configuration that is added to a system's, if an option asks for it."""

    options: ClassVar[Options]
    """The options for `--set` that the target has by the addition."""
    option: ClassVar[str]
    """The name of the option that asks for the addition, by any value but `off`."""
    capabilities: ClassVar[Capabilities | None] = None
    """What the system can do with the addition; None: the same as without."""
    hosts_choose_paths: ClassVar[bool] = False
    """Whether hosts choose the paths of their packets, as with SRv6. Then packets from hosts need
    no VRF of their own."""
    grammar_facts: ClassVar[tuple[str, ...]] = ()
    """The names of facts that lines of the system's grammars depend on."""

    def is_requested(self, chosen: Chosen) -> bool:
        """Whether the options ask for the addition."""
        return chosen.get(self.option, OFF) != OFF

    def options_in(self, plane: int, options: Chosen | None) -> Chosen | None:  # noqa: ARG002
        """The options for one plane of a fabric of several, numbered from 0.

        An addition overrides this method if its options differ from plane to plane, for example
        by a network that must not be the same in two planes.
        """
        return options

    def require(self, build: Build, chosen: Chosen) -> None:  # noqa: ARG002
        """Check that the addition works with the build and the options.

        Raises:
            InputError: it does not.
        """
        return

    def require_rounds(self, chosen: Chosen) -> None:  # noqa: ARG002
        """Check that a push may go from one build to another in rounds.

        Raises:
            InputError: between rounds the switches would not do what the addition is for.
        """
        return

    @abstractmethod
    def printed(self, fabric: Routers, chosen: Chosen) -> Callable[[int], Printed]:
        """A function from a vertex to what is printed at the switch.

        Args:
            fabric: the routers of the build.
            chosen: the value of every option.

        Raises:
            InputError: the build cannot have the addition.
        """

    def commented_out(self, text: str) -> str:
        """A configuration with comments in the place of the lines of the addition.

        The reader of the system reads the rest; `differences` reads the lines of the addition.
        """
        return text

    def differences(
        self,
        fabric: Routers,  # noqa: ARG002
        chosen: Chosen,  # noqa: ARG002
        folder: Path,  # noqa: ARG002
        only: Collection[int] | None,  # noqa: ARG002
    ) -> DifferenceList | None:
        """The differences of rendered files in the lines of the addition.

        None: the addition reads no lines back.

        Args:
            fabric: the routers of the build.
            chosen: the value of every option.
            folder: the folder that `render` wrote.
            only: vertices of the switches to read; None for all.
        """
        return None


@cache
def additions(system: str) -> tuple[Addition[Any, Any], ...]:
    """The additions of a system, in the order of their names.

    Raises:
        InputError: a package that registers an addition is broken.
    """
    names = sorted(name for name in registered(ADDITIONS) if name.startswith(f"{system}."))
    entries = [entry for name in names for entry in registered(ADDITIONS)[name]]
    loaded: list[Addition[Any, Any]] = []
    options: set[str] = set()
    for entry in entries:
        addition_class = load(entry)
        if not (isinstance(addition_class, type) and issubclass(addition_class, Addition)):
            raise broken_entry_point(entry, f"{entry.value} is no subclass of polarfab.Addition")
        if clashing := sorted(options.intersection(addition_class.options)):
            raise broken_entry_point(entry, f"target {system} has an option {clashing[0]} already")
        options |= addition_class.options.keys()
        loaded.append(addition_class())
    return tuple(loaded)
