"""The targets that a fabric.yaml may name, and the module of each."""

from __future__ import annotations

TARGETS = {
    "ansible": "compilers.targets.push.ansible",
    "containerlab": "compilers.targets.push.containerlab",
    "eos": "compilers.targets.routed.eos",
    "frr": "compilers.targets.routed.frr",
    "junos": "compilers.targets.routed.junos",
    "linux": "compilers.targets.routed.linux",
    "nornir": "compilers.targets.push.nornir",
    "nxos": "compilers.targets.routed.nxos",
    "opensm": "compilers.targets.infiniband.opensm",
    "ovs": "compilers.targets.openflow.ovs",
    "sonic": "compilers.targets.routed.sonic",
    "srlinux": "compilers.targets.routed.srlinux",
    "srv6": "compilers.targets.routed.srv6",
}
"""The module that renders each target."""
TOOLS = frozenset({"ansible", "containerlab", "nornir"})
"""Targets that forward nothing: they bring up others, or push what is rendered for others."""
SYSTEMS = tuple(name for name in TARGETS if name not in TOOLS)
"""Targets that forward."""
