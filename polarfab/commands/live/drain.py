"""`polarfab drain`: routes traffic of a running fabric around a node, a link or a risk group."""

from __future__ import annotations

from pathlib import Path

import click

from polarfab.output.verb_output import json_option, print_json, say
from polarfab.shared_options import ControllerAddress, controller_options, target_options


@click.command("drain")
@click.argument("elements", metavar="A-B|NODE|GROUP", nargs=-1, required=True)
@click.option("--end", is_flag=True, help="End the drain: traffic uses it again.")
@controller_options
@click.option(
    "--build",
    "folder",
    metavar="BUILD",
    type=click.Path(path_type=Path),
    help="For routers with eBGP: print what to type on NODE of this build.",
)
@target_options(more="with --build; by default the system of the node", rendered=True)
@json_option
def command(
    elements: tuple[str, ...],
    end: bool,
    controller: ControllerAddress,
    folder: Path | None,
    target: str | None,
    option_words: tuple[str, ...],
    as_json: bool,
) -> None:
    """Route traffic around a link, a node or a group of them, until you end the drain.

    GROUP is module:NODE/MODULE, cage:NODE/PORT, rack:RACK, trunk:RACK-RACK or risk:NAME, as in
    polarfab explain --fail. A drained node still carries the packets of its own hosts. The
    controller refuses a drain that would leave a pair of switches without a path.

    Routers with eBGP have no controller. For these, --build prints the lines to type on NODE.
    Then the other switches send transit traffic around NODE, if they have another path. With --end
    it prints the lines that undo this.
    """
    element = _only_element(elements)
    if target and folder is None:
        raise click.UsageError("--target needs --build")
    if folder:
        from compilers.targets.options import read
        from compilers.targets.routed.bgp.drained import maintenance_lines
        from polarfab.fabric import Fabric

        build = Fabric.load(folder).build
        lines = maintenance_lines(build, target or "", read(option_words), element, end=end)
        if as_json:
            print_json({"node": element, "target": target, "lines": lines})
        else:
            click.echo("\n".join(lines))
        return
    action = "undrain" if end else "drain"
    state = controller.client().post(action, {"what": element})
    if as_json:
        print_json(state)
    else:
        say(f"drained by request: {', '.join(state['asked']) or 'nothing'}")
        if state.get("repairing"):
            say("the tables are being changed; polarfab status says so until it is done")


def _only_element(elements: tuple[str, ...]) -> str:
    """The link, node or group to drain.

    Raises:
        UsageError: several are named, perhaps because a build was named without its option.
    """
    *other_words, element = elements
    if other_words:
        todo = "drain them in turn"
        if Path(other_words[0]).is_dir():
            todo = f"for routers: polarfab drain {element} --build {other_words[0]}"
        words = " ".join(elements)
        raise click.UsageError(f"required one link, node or group, given {words}; {todo}")
    return element
