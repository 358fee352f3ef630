"""Management in a configuration: its ports and their VRF, where no packet of the fabric gets to.

It is taken away before what forwards is read. A port of the fabric in the VRF of management stays,
and is found to be wrong there.
"""

from __future__ import annotations

import re
from typing import Any

PORT = re.compile(r"Management[0-9]+(/[0-9]+)*|mgmt0|re[01]:mgmt-0|fxp0|em[01]|me0|vme|eth0")
MENTION = re.compile(rf"^(set interfaces|interface) ({PORT.pattern})\b", re.MULTILINE)
JUNOS_VRF = "mgmt_junos"
"""The one that Junos has for management."""
Tree = dict[str, Any]


def is_port(name: str) -> bool:
    """Whether a port, or a logical part of one, is for management."""
    return PORT.fullmatch(name.partition(".")[0]) is not None


def without_sections(text: str) -> str:
    """A configuration of EOS or NX-OS with comments in the place of management."""
    if not MENTION.search(text):
        return text
    lines, vrf, inside = text.splitlines(), "", False
    for line in lines:
        words = line.split()
        if line[:1] != " ":
            inside = words[:1] == ["interface"] and is_port(words[-1])
        elif inside and words[0] == "vrf":
            vrf = words[-1]
    if vrf in ("", "default"):
        return text  # its routes are among those of the fabric
    heads = (["vrf", "instance", vrf], ["vrf", "context", vrf])
    for number, line in enumerate(lines):
        words = line.split()
        if line[:1] != " ":
            inside = words in heads or (words[:1] == ["interface"] and is_port(words[-1]))
        if inside or (vrf and words[1:4] == ["route", "vrf", vrf]):
            lines[number] = "!"
    return "\n".join(lines) + "\n"


def without_commands(text: str) -> str:
    """`set` commands of Junos with empty lines in the place of management."""
    if not MENTION.search(text) or "set system management-instance\n" not in text:
        return text
    kept = []
    for line in text.splitlines():
        _, first, second, *_ = *line.split(None, 3), "", "", ""
        apart = first == "routing-instances" and second == JUNOS_VRF
        kept.append("" if apart or (first == "interfaces" and is_port(second)) else line)
    return "\n".join(kept) + "\n"


def without_keys(tree: Tree) -> Tree:
    """AVD's structured config without management."""
    vrfs = {entry.get("vrf") for entry in tree.get("management_interfaces", [])}
    kept = dict(tree)
    for key, word in (("vrfs", "name"), ("static_routes", "vrf"), ("ipv6_static_routes", "vrf")):
        if left := [entry for entry in tree.get(key, []) if entry.get(word, "") not in vrfs]:
            kept[key] = left
        else:
            kept.pop(key, None)
    return kept


def without_instances(tree: Tree, interfaces: str, instances: str) -> Tree:
    """SR Linux's configuration without management; the arguments are the keys of both lists."""
    return tree | {
        interfaces: [i for i in tree.get(interfaces, []) if not is_port(i.get("name", ""))],
        instances: [
            instance
            for instance in tree.get(instances, [])
            if not instance.get("interface")
            or not all(is_port(entry["name"]) for entry in instance["interface"])
        ],
    }
