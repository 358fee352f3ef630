"""Shell completion: the script of `polarfab --completion`, and the values of parameters.

The parameter types here complete names of families, scenarios, patterns and build folders.
When a shell asks for completions, `polarfab.cli` gives them to the parameters of the verb.
"""

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
"""The file in which each shell looks for the script."""


def script(cli: click.Command, shell: str) -> str:
    """The completion script of a shell, one of `FILES`."""
    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"click cannot complete for {shell}")
    return completion(cli, {}, "polarfab", "_POLARFAB_COMPLETE").source()


class KnownName(click.ParamType):  # type: ignore[type-arg]
    """A name from a registry of the compiler, which is imported only when it is completed."""

    name = "name"

    def __init__(self, module: str, registry: str) -> None:
        """`registry` is the name of a mapping or list in a module."""
        self.module, self.registry = module, registry

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """The names that begin with a word."""
        names = getattr(import_module(self.module), self.registry)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


KNOWN_NAMES = {
    "FAMILY": KnownName("compilers.topology.families", "FAMILIES"),
    "KIND": KnownName("compilers.topology.supernodes", "SUPERNODE_KINDS"),
    "PATTERN": KnownName("compilers.evaluation.traffic", "PATTERNS"),
}
"""The names that complete a parameter, by its metavar."""


class BuildFolder(click.Path):
    """A build folder, or a family. If none begins with the word, files and folders complete it."""

    families = False
    """Whether the name of a family is allowed."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The families, if allowed, and the build folders that begin with a word."""
        names: list[CompletionItem] = []
        if self.families:
            names = KNOWN_NAMES["FAMILY"].shell_complete(ctx, param, incomplete)
        paths = sorted(glob(f"{escape(incomplete)}*/manifest.json"))  # noqa: PTH207 - as typed
        builds = [CompletionItem(Path(manifest).parent.as_posix()) for manifest in paths]
        return names + builds or super().shell_complete(ctx, param, incomplete)


class ScenarioName(click.Path):
    """A scenario that comes with polarfab; if none begins with the word, a file."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names that begin with a word."""
        paths = sorted(Path(_scenarios[0], "library").glob(f"{escape(incomplete)}*.yaml"))
        names = [CompletionItem(path.stem) for path in paths]
        return names or super().shell_complete(ctx, param, incomplete)


def prepare_for_completion(command: click.Command) -> None:
    """Prepare a verb for completion: its parameters complete quickly, with polarfab's values.

    The metavar of a parameter says which values it takes, such as BUILD, OLDBUILD or BUILD|FABRIC.
    """
    for param in command.params:
        param.callback = None  # it would import modules to check the value
        metavar = str(param.metavar).strip("[]")
        if "BUILD" in metavar:
            param.type = BuildFolder(file_okay="|" in metavar)
            param.type.families = "FAMILY" in metavar
        elif "SCENARIO" in metavar:
            param.type = ScenarioName()
        elif metavar in KNOWN_NAMES:
            param.type = KNOWN_NAMES[metavar]
