"""`polarfab inventory`: reads hardware from NetBox or Nautobot, and writes it for NetBox."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from polarfab.output.earlier_build import with_earlier_ports
from polarfab.output.verb_output import (
    counted,
    json_option,
    print_json,
    say,
    say_written,
    write_file,
    write_files,
)
from polarfab.shared_options import Words, output_option, shared

ALWAYS_COUNTED = "node_types", "racks", "nodes", "cables", "cables_left_out"
"""The counts of an import that are printed even if they are 0."""


@click.group("inventory", cls=Words)
def command() -> None:
    """Exchange hardware with NetBox and Nautobot."""


@command.command("export")
@click.argument("fabric")
@output_option("a new folder, or one with an earlier export", usual=Path("netbox"))
@click.option(
    "--site",
    default="",
    show_default=False,
    help="The site's name in NetBox; the fabric's without it.",
)
@click.option("--role", default="switch", help="The devices' role.")
@shared("--target", meaning="ports are named as it does")
@shared(
    "--from",
    meaning="its cables, hosts and units are exported, not those of ./build",
    parameter="old",
)
@json_option
def export(
    fabric: str,
    output: Path,
    site: str,
    role: str,
    target: str | None,
    old: Path | None,
    as_json: bool,
) -> None:
    """Write the hardware of FABRIC (fabric.yaml) for NetBox's bulk imports.

    Device types (YAML), racks, devices, interfaces and cables (CSV): import them in this order.
    NetBox makes the interfaces from the device types; their file is for other tools.

    Cables, hosts and units are as `compile` would plan them: those of OLDBUILD stay, or those in
    ./build if that is a build of the fabric. Without a build all are planned anew. A note says
    which.
    """
    from inventory.problems import InputError
    from polarfab.exports import netbox
    from polarfab.fabric import Fabric

    if Path(fabric).is_dir():
        todo = f"name its fabric.yaml, and the build with --from {fabric}"
        raise InputError.of("a fabric.yaml, whose inventory describes the hardware", fabric, todo)
    loaded = with_earlier_ports(Fabric.from_spec(fabric), old, "name it with --from BUILD")
    files = netbox(loaded, site, role, target or "")
    write_files(output, "netbox", loaded.name, files)
    if as_json:
        print_json({"folder": str(output), "files": list(files)})


@command.command("import")
@click.argument("paths", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@output_option("the inventory", usual=Path("inventory.yaml"))
@click.option(
    "--only-role",
    "roles",
    multiple=True,
    show_default=False,
    help="The role of devices that become nodes, in the site's words; may be given several "
    "times. Without it, devices whose role says that they are no switches are left out.",
)
@json_option
def import_(paths: tuple[Path, ...], output: Path, roles: tuple[str, ...], as_json: bool) -> None:
    """Make an inventory.yaml from device types (YAML), devices, racks and cables (CSV).

    FILE may be a folder. The files are those that NetBox and Nautobot export, or the community
    library's. A device type alone gives node_types to paste into an inventory.
    """
    import yaml

    from inventory.netbox.netbox_file import read_netbox

    _require_new(output)
    if as_json and str(output) == "-":
        raise click.UsageError("--json is printed where -o - writes; leave one of them out")
    imported = read_netbox(paths, roles)
    text = yaml.safe_dump(imported.data, sort_keys=False, width=100, default_flow_style=None)
    write_file(output, [text])
    if "nodes" in imported.data:
        _check(output, imported.data)
    counts = {word: len(imported.data.get(word, ())) for word in ("node_types", "racks", "nodes")}
    left_out = imported.left_out
    counts |= {"cables": len(imported.data.get("cables", ())), "cables_left_out": left_out.cables}
    counts["devices_left_out"] = sum(map(len, left_out.devices.values()))
    counts["interfaces_left_out"] = left_out.interfaces.total()
    counts["breakout_cables_left_out"] = len(left_out.breakouts)
    if as_json:
        print_json({"file": str(output), **counts, "left_out": list(left_out.lines())})
        return
    for line in left_out.lines():
        say(line)
    printed_counts = [word for word, count in counts.items() if count or word in ALWAYS_COUNTED]
    listed = (_count_in_words(word, counts[word]) for word in printed_counts)
    say_written(output, f": {', '.join(listed)}")


def _count_in_words(word: str, count: int) -> str:
    """`1 node type` for the word `node_types`, `2 cables left out` for `cables_left_out`."""
    nouns, left_out, _ = word.replace("_", " ").partition(" left out")
    return counted(count, nouns.removesuffix("s")) + left_out


def _require_new(output: Path) -> None:
    """Refuse an output that exists.

    Raises:
        InputError: it exists.
    """
    from inventory.problems import InputError

    if output.exists():
        kind = "a folder" if output.is_dir() else "one that is there"
        todo = "name another with -o, or remove it" if output.is_file() else "name another with -o"
        raise InputError.of("a new file", kind, todo, str(output))


def _check(output: Path, data: Mapping[str, Any]) -> None:
    """Check the inventory that was written.

    Raises:
        InputError: the imported files had mistakes.
    """
    from inventory.inventory_file import load_inventory
    from inventory.problems import InputError

    try:
        load_inventory(data if str(output) == "-" else output)
    except InputError:
        say(f"{output} is written, but it has mistakes that the files gave it:")
        raise
