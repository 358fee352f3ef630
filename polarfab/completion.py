"""`polarfab --completion`, and the values that click does not know how to complete."""

from __future__ import annotations

from glob import escape, glob
from importlib import import_module
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from mininet_scenarios import __path__ as _scenarios

FILES = {
    "bash": "~/.local/share/bash-completion/completions/polarfab",
    "zsh": "~/.zfunc/_polarfab",
    "fish": "~/.config/fish/completions/polarfab.fish",
}
"""Where the script of each shell belongs."""


def script(cli: click.Command, shell: str) -> str:
    """The completion script of a shell of `FILES`."""
    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"click cannot complete for {shell}")
    return completion(cli, {}, "polarfab", "_POLARFAB_COMPLETE").source()


class KnownName(click.ParamType):  # type: ignore[type-arg]
    """One of the names that a part of the compiler knows."""

    name = "name"

    def __init__(self, module: str, registry: str) -> None:
        self.module, self.registry = module, registry

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """The names that begin so."""
        names = getattr(import_module(self.module), self.registry)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


KNOWN_NAMES = {
    "FAMILY": KnownName("compilers.topology.families", "FAMILIES"),
    "KIND": KnownName("compilers.topology.supernodes", "SUPERNODE_KINDS"),
    "PATTERN": KnownName("compilers.evaluation.traffic", "PATTERNS"),
}


class BuildFolder(click.Path):
    """A build folder, or a family; where none begins so, files and folders on the way."""

    families = False

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The families, where one is allowed, and the build folders that begin so."""
        names = (
            KNOWN_NAMES["FAMILY"].shell_complete(ctx, param, incomplete) if self.families else []
        )
        paths = sorted(glob(f"{escape(incomplete)}*/manifest.json"))  # noqa: PTH207 - as typed
        builds = [CompletionItem(Path(manifest).parent.as_posix()) for manifest in paths]
        return names + builds or super().shell_complete(ctx, param, incomplete)


class ScenarioName(click.Path):
    """A scenario that comes with polarfab; where none begins with what is typed, a file."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names that begin so."""
        paths = sorted(Path(_scenarios[0], "library").glob(f"{escape(incomplete)}*.yaml"))
        names = [CompletionItem(path.stem) for path in paths]
        return names or super().shell_complete(ctx, param, incomplete)


def ready_for_completion(command: click.Command) -> None:
    """Have a verb, of which only the words are read, complete quickly and with our values.

    A parameter says by its metavar what it takes, as BUILD, OLDBUILD and BUILD|FABRIC do.
    """
    for param in command.params:
        param.callback = None  # it would import what checks the value
        metavar = str(param.metavar).strip("[]")
        if "BUILD" in metavar:
            param.type = BuildFolder(file_okay="|" in metavar)
            param.type.families = "FAMILY" in metavar
        elif "SCENARIO" in metavar:
            param.type = ScenarioName()
        elif metavar in KNOWN_NAMES:
            param.type = KNOWN_NAMES[metavar]
