"""`polarfab hosts`: what hosts choose, or find out, by the paths of a build."""

from __future__ import annotations

from extensions.host_paths import localise_verb, paths_verb
from polarfab.shared_options import Words

command = Words(
    "hosts",
    commands=[paths_verb.command, localise_verb.command],
    help="Paths that hosts choose by SRv6; probes of all links, and what failed.",
)
