"""`python -m benchmarks NAME`: each NAME is a script of this folder, with options of its own."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from inventory.problems import InputError
from mininet_scenarios.scenario.engine import EngineError

SCRIPTS = (
    "tables",
    "scale",
    "simulate",
    "controller",
    "repair",
    "receipt",
    "emulate",
    "moves",
    "many-switches",
    "readers",
)
"""The scripts, in the order of the help."""


class Scripts(click.Group):
    """A group whose scripts are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in the order of `SCRIPTS`."""
        return list(SCRIPTS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the script."""
        if cmd_name not in SCRIPTS:
            return None
        command: click.Command = import_module(f"benchmarks.{cmd_name.replace('-', '_')}").command
        return command


@click.group(cls=Scripts, context_settings={"show_default": True, "max_content_width": 100})
def benchmarks() -> None:
    """Measure polarfab and other programs on this machine, in one run.

    Ratios travel between machines; seconds do not.
    """


def main() -> None:
    """Run one script."""
    try:
        benchmarks(prog_name="python -m benchmarks")
    except (InputError, EngineError) as error:
        sys.exit(f"error: {error}")
    except ModuleNotFoundError as error:
        sys.exit(f"error: benchmarks need {error.name}; `make lint` installs it")


if __name__ == "__main__":
    main()
