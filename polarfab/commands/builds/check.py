"""`polarfab check`: a spec, the cables or the routes of switches against what they should be."""

from __future__ import annotations

from polarfab.commands.builds import check_spec
from polarfab.commands.hardware import check_wiring
from polarfab.commands.routers import check_routes
from polarfab.shared_options import Words

command = Words(
    "check",
    commands=[each.command for each in (check_spec, check_wiring, check_routes)],
    help="Check a fabric.yaml, the cables or the routing tables of a fabric.",
)
