"""`polarfab targets`: lists the systems that `render` writes for, and what each can do."""

from __future__ import annotations

from typing import Any

import click

from polarfab.output.verb_output import json_option, print_facts, print_json, print_table, warn
from polarfab.shared_options import complete_target, known_target


@click.command("targets")
@click.argument(
    "name",
    metavar="[TARGET]",
    callback=known_target,
    shell_complete=complete_target,
    required=False,
)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the targets of `render`, those of installed packages too; or all about TARGET.

    What a target can do holds with its options at their defaults. Exit code 1 when the package of a
    target is broken.
    """
    from compilers.spec.target_names import target_names

    targets = [_target_facts(target) for target in ([name] if name else target_names())]
    broken = [facts["error"] for facts in targets if "error" in facts]
    if as_json:
        print_json(targets[0] if name else targets)
    elif name and not broken:
        _print_target(targets[0])
    else:
        rows = [(facts["name"], facts["summary"]) for facts in targets if "error" not in facts]
        if rows:
            print_table("targets", ["target", "writes"], rows)
        for error in broken:
            warn(f"error: {error}")
    if broken:
        raise click.exceptions.Exit(1)


def _target_facts(name: str) -> dict[str, Any]:
    """The facts of a target for JSON, or the error of a broken one."""
    from compilers.spec.node_systems import CONTROL_KEYS
    from compilers.targets.target_lookup import target
    from inventory.problems import InputError

    try:
        system = target(name)
    except InputError as error:
        return {"name": name, "error": str(error)}
    capabilities = system.capabilities
    return {
        "name": name,
        "summary": system.summary,
        "files": list(system.files),
        "whole_fabric": system.whole_fabric,
        "tool": system.is_tool,
        "capabilities": sorted(capabilities.features),
        "routes": capabilities.rows,
        "groups": capabilities.groups,
        "options": {
            word: {"what": option.description, "values": option.possible, "default": option.default}
            for word, option in system.all_options.items()
        },
        "agreements": {
            CONTROL_KEYS[word]: {"what": option.description, "default": option.default}
            for word, option in system.agreements.items()
        },
    }


def _features(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What a system can do. A tool takes every build: the systems whose files it has say more."""
    if facts["tool"]:
        return []
    return [("can do", ", ".join(facts["capabilities"]) or "minimal routes")]


def _print_target(facts: dict[str, Any]) -> None:
    """Print the facts of a target, and tables of its options."""
    limits = [(word, facts[word]) for word in ("routes", "groups") if facts[word]]
    print_facts(
        facts["name"],
        [
            ("writes", facts["summary"]),
            ("files", ", ".join(facts["files"])),
            ("for", "the whole fabric" if facts["whole_fabric"] else "every switch"),
            *_features(facts),
            *((word, f"at most {limit:,} a switch") for word, limit in limits),
        ],
    )
    options = [
        (word, option["what"], option["values"], option["default"])
        for word, option in facts["options"].items()
    ]
    if options:
        print_table("options", ["--set", "what for", "values", "default"], options)
    keys = [(key, option["what"], option["default"]) for key, option in facts["agreements"].items()]
    if keys:
        print_table("fabric.yaml", ["key", "what for", "default"], keys)
