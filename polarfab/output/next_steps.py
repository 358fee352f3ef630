"""The lines `next: …` after a verb, which name the commands that usually follow.

They are printed on terminals only, without --quiet and --json.
"""

from __future__ import annotations

import shlex
import sys
from typing import Any

import click

from polarfab.output.verb_output import volume

NEXT_STEPS: dict[str, tuple[str, ...]] = {
    "init": ("polarfab check spec {folder}/fabric.yaml", "polarfab compile {folder}/fabric.yaml"),
    "check spec": ("polarfab compile {fabric_file}",),
    "compile": (
        "polarfab draw {output} -o {output}.html",
        "polarfab cables {output}",
        "polarfab render {output} --target frr -o configs",
        "polarfab controller {output}",
    ),
    "verify": ("polarfab render {folder} --target frr -o configs", "polarfab controller {folder}"),
    "explain": ("polarfab explain {folder} {source} {destination} --fail NODE",),
    "cables": ("polarfab cables {folder} --format labels -o labels.html",),
    "expand": (
        "polarfab plan {output} --from {folder}",
        "polarfab rehearse {output} --from {folder}",
    ),
    "diff": ("polarfab plan {folder} --from {old}",),
    "render": ("polarfab verify {folder} --emitted {output}",),
    "plan": ("polarfab rehearse {folder} --from {old}", "polarfab apply {folder}"),
    "apply": ("polarfab status",),
    "rehearse": ("polarfab apply {folder}",),
    "folder": ("polarfab verify {folder}",),
}
"""By verb, the commands that follow it, with the names of the verb's parameters in braces.

A command is left out if the user has not set a parameter that it needs.
"""


def say_next(context: click.Context) -> None:
    """Print the commands that follow a verb that has succeeded, on stderr if it is a terminal."""
    parameters: dict[str, Any] = context.meta.get("parameters", {})
    if not sys.stderr.isatty() or volume() < 0 or parameters.get("as_json"):
        return
    for line in next_lines(context.meta.get("verb", ""), parameters):
        click.echo(f"next: {line}", err=True)


def next_lines(verb: str, parameters: dict[str, Any]) -> list[str]:
    """The commands that follow a verb, with the values of its parameters by name."""
    words = {name: shlex.quote(str(value)) for name, value in parameters.items() if value}
    lines = []
    for step in NEXT_STEPS.get(verb, ()):
        try:
            lines.append(step.format_map(words))
        except KeyError:
            continue
    return lines
