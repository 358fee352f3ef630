"""The list of all verbs, in sections; a section is a folder of `polarfab/commands`.

Extensions and other packages register more verbs (`compilers.entry_points`).
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import NamedTuple

import click

from compilers.entry_points import VERBS as GROUP
from compilers.entry_points import broken_entry_point, load, registered
from inventory.problems import InputError, did_you_mean


class Section(NamedTuple):
    """Verbs under one heading of `polarfab --help`."""

    heading: str
    """The heading."""
    folder: str
    """The folder of their modules."""
    verbs: dict[str, str]
    """The verbs, each with its line of help."""


SECTIONS = (
    Section(
        "Choose a fabric",
        "topologies",
        {
            "design": "Which fabrics can be built: sizes, efficiency, cost.",
            "path": "A minimal path between two vertices by algebra, with the reasons.",
            "analyse": "Distances, paths, load, bisection, resilience, growth of a fabric.",
            "draw": "The fabric as a picture or an interactive page, and plots.",
        },
    ),
    Section(
        "Compile and prove it",
        "builds",
        {
            "init": "A fabric.yaml and an inventory.yaml that fit each other, to start from.",
            "check": "Check a spec; compare cables and routes of real switches with a build.",
            "compile": "Compile spec and inventory into a build folder with proved tables.",
            "verify": "Prove that a build's tables deliver the packets of every pair.",
            "explain": "The paths between two nodes, hop by hop, with ports.",
            "throughput": "How much hosts can send under traffic patterns, by the tables.",
            "diff": "What differs between two builds, or between their configurations.",
        },
    ),
    Section(
        "Cable and grow it",
        "hardware",
        {
            "cables": "Cable schedule, labels, bill of materials.",
            "inventory": "Import and export NetBox and Nautobot data.",
            "expand": "Grow a fabric: list the switches and cables to add; none is moved.",
        },
    ),
    Section(
        "Configure routers",
        "routers",
        {
            "targets": "List the systems that render writes for, with their features and options.",
            "render": "Write every switch's configuration for a target.",
            "push": "Put a build's routes on routers, check them there, and save.",
        },
    ),
    Section(
        "Give it to other programs",
        "exports",
        {
            "export": "The graph as a file; a network for BookSim.",
        },
    ),
    Section(
        "Run it by OpenFlow",
        "live",
        {
            "controller": "Run the OpenFlow controller (Ryu or os-ken) for a build.",
            "status": "Show the state of the fabric that a controller runs.",
            "drain": "Route traffic around a node, a link or a module, for maintenance.",
            "plan": "What a move between two builds changes, in rounds; whether packets are lost.",
            "apply": "Move a running fabric to another build, keep it, or go back.",
        },
    ),
    Section(
        "Rehearse it",
        "emulation",
        {
            "emulate": "Run a scenario on emulated switches, check it, and tear it down.",
            "rehearse": "Try a move between two builds on an emulated fabric, under traffic.",
        },
    ),
    Section(
        "Look after folders",
        "upkeep",
        {
            "folder": "Check a folder, put its last build back, remove what killed processes left.",
        },
    ),
)
VERBS = {verb: section.folder for section in SECTIONS for verb in section.verbs}
"""The folder of each verb's module, by the verb."""


def verb_names() -> list[str]:
    """All verbs in the order of the work, then those of extensions."""
    return [*VERBS, *registered(GROUP)]


def verbs_with_help() -> Iterator[tuple[str, str]]:
    """The verbs, each with its line of help."""
    for section in SECTIONS:
        yield from section.verbs.items()
    for name in registered(GROUP):
        yield name, verb(name).get_short_help_str(90)


def verb(name: str) -> click.Command:
    """The command of a verb.

    Raises:
        InputError: there is no such verb, or the package that registers it is broken.
    """
    if name in VERBS:
        module = import_module(f"polarfab.commands.{VERBS[name]}.{name.replace('-', '_')}")
        command: click.Command = module.command
        return command
    if name not in registered(GROUP):
        todo = did_you_mean(name, verb_names(), "polarfab --help lists them")
        raise InputError.of("a verb", name, todo)
    entry = registered(GROUP)[name][0]
    command_of_package = load(entry)
    if not isinstance(command_of_package, click.Command):
        raise broken_entry_point(entry, f"{entry.value} is no click.Command")
    return command_of_package
