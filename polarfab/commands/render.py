"""`polarfab render`: every switch's configuration for a target."""

from __future__ import annotations

from pathlib import Path

import click

from compilers.targets import TARGETS
from polarfab.output import json_option, print_json, progress, say


@click.command("render")
@click.argument("folder", metavar="BUILD", type=click.Path(path_type=Path))
@click.option("--target", type=click.Choice(list(TARGETS)), required=True, help="The system.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder to write."
)
@click.option(
    "--templates",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Templates of your own that stand in for those of the target.",
)
@click.option(
    "--set",
    "words",
    metavar="NAME=VALUE",
    multiple=True,
    help="An option of the target; again for more.",
)
@click.option("--unverified", is_flag=True, help="Take a build that verify has not passed on.")
@json_option
def command(
    folder: Path,
    target: str,
    output: Path,
    templates: Path | None,
    words: tuple[str, ...],
    unverified: bool,
    as_json: bool,
) -> None:
    """Write the configuration of every switch of BUILD, in OUTPUT/<node>/.

    \b
    ovs:   groups.txt and flows.txt, for
           ovs-ofctl -O OpenFlow13 add-groups BRIDGE groups.txt
           ovs-ofctl -O OpenFlow13 add-flows BRIDGE flows.txt
    linux: load.sh, which does it all, and the files it loads
    frr:   frr.conf, and batches and sysctl.conf for what FRR leaves to others
    srv6:  paths of hosts, in OUTPUT/hosts/<host>/, and SIDs of switches
    opensm: lfts.txt and what else OpenSM needs, for the whole fabric
    eos, nxos, junos, srlinux, sonic: a config of that system; docs/ has a page each
    containerlab, ansible, nornir: a lab or an inventory for the files of another target

    docs/ has a page a target, with the options that --set takes.
    """
    from compilers.build import load, require_verified
    from compilers.targets import target as target_of
    from compilers.targets.options import read
    from compilers.targets.rendering import nodes

    options = read(words)
    build = load(folder)
    if unverified:
        say("warning: --unverified: nobody has checked that these tables forward")
    else:
        require_verified(folder, build)
    render = target_of(target).render
    with progress(f"rendering {target}") as report:
        written = render(build, output, templates=templates, progress=report, options=options)
    count = len(list(nodes(build)))
    if not as_json:
        say(f"{count} nodes of build {build.identity} rendered in {output}")
        return
    print_json(
        {
            "build": build.identity,
            "target": target,
            "folder": str(output),
            "nodes": count,
            "files": written.files,
            "bytes": written.bytes,
        }
    )
