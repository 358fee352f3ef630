"""What a package adds to a system: options, and what the system's class prints where they ask.

A package registers an addition by an entry point of the group `polarfab.additions`, an extension by
`ENTRY_POINTS` of its `__init__.py`. The name of the entry point is SYSTEM.WHAT. The class of the
system stays what it is. It prints what additions return, in a form that its folder defines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from compilers.entry_points import ADDITIONS, broken, load, registered
from compilers.readers.emitted_report import DifferenceList
from compilers.targets.capabilities import Capabilities
from compilers.targets.options import OFF, Chosen, Options

if TYPE_CHECKING:
    from compilers.tables.build import Build

Routers = TypeVar("Routers")
"""All routers of a build, as the class of the system has them."""
Printed = TypeVar("Printed")
"""What a system prints for an addition at a switch; the folder of the system has the type."""


class Addition(ABC, Generic[Routers, Printed]):
    """An addition to a system."""

    options: ClassVar[Options]
    """What `--set` takes besides the system's own options."""
    option: ClassVar[str]
    """Which of them asks for the addition, unless it is `off`."""
    capabilities: ClassVar[Capabilities | None] = None
    """What the system can do with it; None: what it can do without."""
    hosts_choose: ClassVar[bool] = False
    """Whether hosts choose among paths, so that the port of a host needs no table of its own."""
    grammar_facts: ClassVar[tuple[str, ...]] = ()
    """What the system's grammars take for defined."""

    def wanted(self, chosen: Chosen) -> bool:
        """Whether the options ask for it."""
        return chosen.get(self.option, OFF) != OFF

    def options_in(self, plane: int, options: Chosen | None) -> Chosen | None:  # noqa: ARG002
        """The options of a plane of several, from 0; see `Target.options_in`."""
        return options

    def require(self, build: Build, chosen: Chosen) -> None:  # noqa: ARG002
        """Pass when it can be had with this build and these options.

        Raises:
            InputError: it cannot.
        """
        return

    def require_rounds(self, chosen: Chosen) -> None:  # noqa: ARG002
        """Pass when a push may go from one build to another in rounds.

        Raises:
            InputError: what the addition promises does not hold in between.
        """
        return

    @abstractmethod
    def printed(self, fabric: Routers, chosen: Chosen) -> Callable[[int], Printed]:
        """What is printed at a switch, by its vertex.

        Raises:
            InputError: the build cannot have it.
        """

    def others_lines(self, text: str) -> str:
        """A configuration with comments in the place of the lines that `differences` reads."""
        return text

    def differences(
        self,
        fabric: Routers,  # noqa: ARG002
        chosen: Chosen,  # noqa: ARG002
        folder: Path,  # noqa: ARG002
        only: Collection[int] | None,  # noqa: ARG002
    ) -> DifferenceList | None:
        """What rendered files say otherwise than they should of the addition.

        Args:
            fabric: the routers of the build.
            chosen: the value of every option.
            folder: of all switches.
            only: vertices of the switches that are there; None for all.
        """
        return None


@cache
def additions(system: str) -> tuple[Addition[Any, Any], ...]:
    """What packages add to a system, in the order of the names.

    Raises:
        InputError: a package that registers an addition is broken.
    """
    names = sorted(name for name in registered(ADDITIONS) if name.startswith(f"{system}."))
    found: list[Addition[Any, Any]] = []
    taken: set[str] = set()
    for entry in (entry for name in names for entry in registered(ADDITIONS)[name]):
        kind = load(entry)
        if not (isinstance(kind, type) and issubclass(kind, Addition)):
            raise broken(entry, f"{entry.value} is no subclass of polarfab.Addition")
        if twice := sorted(taken.intersection(kind.options)):
            raise broken(entry, f"target {system} has an option {twice[0]} already")
        taken |= kind.options.keys()
        found.append(kind())
    return tuple(found)
