"""Targets: one module each, from the intermediate form to what a system reads."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from compilers.spec.target_names import TARGETS

if TYPE_CHECKING:  # `polarfab render --help` needs the names only
    from compilers.tables.build import Build
    from compilers.targets.capabilities import Capabilities
    from compilers.targets.options import Chosen, Options
    from compilers.targets.rendering import Written


class Target(Protocol):
    """What the module of a target offers.

    FILES are the names of the files of every switch, OPTIONS what `--set` takes. Those of `SYSTEMS`
    have CAPABILITIES: what the system can do with the options' defaults.
    """

    FILES: tuple[str, ...]
    OPTIONS: Options
    CAPABILITIES: Capabilities

    def require(self, build: Build, chosen: Chosen) -> None:
        """Pass when the target can do all that the build and the options ask for; of `SYSTEMS`.

        Args:
            build: what is to be rendered.
            chosen: the value of every option.

        Raises:
            InputError: it cannot; every reason at once.
        """

    def render(
        self,
        build: Build,
        out: Path,
        templates: Path | None = None,
        progress: Callable[[int, int], None] | None = None,
        options: Chosen | None = None,
        only: Collection[int] | None = None,
    ) -> Written:
        """Write the files of every switch of the build in OUT/<node>/; returns how much.

        Args:
            build: what to render.
            out: the folder; files that stand in it are replaced one by one, each whole or not at
                all.
            templates: a folder with templates of the user's own, TARGET/FILE.j2.
            progress: called with (switches done, all switches).
            options: values of `OPTIONS` by name; defaults for those that are not there.
            only: vertices of the switches to write; None for all.

        Raises:
            InputError: an option is wrong, the build asks for what this target cannot do, a
                template of the user's is wrong, or OUT cannot be written.
        """


def target(name: str) -> Target:
    """The target of that name; KeyError where there is none."""
    return cast(Target, import_module(TARGETS[name]))
