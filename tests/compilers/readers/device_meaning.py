"""What devices without a real one here make of a text, by their documents: a second, small reader.

A meaning is a value: two texts of one meaning configure the same. It knows nothing of the grammars.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable

NXOS_MODES = {
    "interface ": r"(no )?(description|mtu|fec|switchport|vrf member|ip address|ip redirects|"
    r"ipv6 address|ipv6 redirects|shutdown)\b",
    "vrf context ": r"(ip|ipv6) route ",
    "vlan ": r"name ",
    "route-map ": r"(match|set) ",
    "router bgp ": r"(router-id|bestpath|maxas-limit|reconnect-interval|log-neighbor-changes|"
    r"address-family|template peer|neighbor)\b",
    "address-family ": r"(network|additional-paths|route-map) ",
    "template peer ": r"(bfd$|timers |address-family )",
    "neighbor ": r"(inherit|remote-as|address-family) ",
}
EOS_MODES = {
    "interface ": r"(no )?(description|mtu|speed|error-correction|switchport|vrf|ip address|"
    r"ipv6 address|shutdown)\b",
    "vlan ": r"name ",
    "ip prefix-list ": r"seq ",
    "ipv6 prefix-list ": r"seq ",
    "route-map ": r"(match|set) ",
    "router bfd": r"interval ",
    "router bgp ": r"(no )?(router-id|bgp|timers|maximum-paths|neighbor|address-family)\b",
    "address-family ": r"(neighbor|network) ",
}
"""The modes of a system by how the command begins that opens them, and what can be said there."""
GLOBAL = (
    r"(no )?(hostname|feature|vlan|vrf|interface|ip|ipv6|router|route-map|bfd|ntp|logging"
    r"|service)\b"
)
FEATURES = {"interface Vlan": "interface-vlan", "router bgp": "bgp", "bfd interval": "bfd"}
ADDRESSES = ("ip address ", "ipv6 address ")


def cli(text: str, modes: dict[str, str]) -> Hashable:
    """EOS or NX-OS: commands with the mode where they are taken, whatever their indentation.

    A command that the open mode does not have is tried in those above it. NX-OS takes no address on
    a switched port, and no command of a feature that is off; EOS no VRF that is not there.
    """
    nxos = modes is NXOS_MODES
    done: set[tuple[str, ...]] = set()
    stack: list[str] = []
    for line in text.splitlines():
        command = line.strip()
        if not command or command[0] == "!":
            continue
        while stack:
            mode = next(m for m in modes if stack[-1].startswith(m))
            if re.match(modes[mode], command):
                break
            stack.pop()
        if not stack and not re.match(GLOBAL, command):
            done.add(("refused", command))
            continue
        off = next((f for begin, f in FEATURES.items() if command.startswith(begin)), None)
        vrf = re.search(r"(?<!-)\bvrf (?!instance|context|member|default)(\S+)", command)
        port = stack[-1] if stack and stack[-1].startswith("interface ") else ""
        here = [one for one in done if port and one[-2:-1] == (port,)]
        routed = (port, "no switchport") in done or not port.startswith("interface Ethernet")
        if (nxos and off and (f"feature {off}",) not in done) or (
            nxos and port and not routed and command.startswith((*ADDRESSES, "vrf member"))
        ):
            done.add(("refused", command))
            continue
        if not nxos and vrf and (f"vrf instance {vrf[1]}",) not in done:
            done.add(("refused", command))
            continue
        if command.startswith("vrf ") or (nxos and command in ("no switchport", "switchport")):
            done -= {one for one in here if one[-1].startswith(ADDRESSES)}
        done.add((*stack, command))
        if any(command.startswith(mode) for mode in modes) and not (
            re.match(r"neighbor \S+ \S", command) or command.startswith("bfd ")
        ):
            stack.append(command)
    return frozenset(done)


def junos(text: str) -> Hashable:
    """`set` commands in any order, but for the terms of filters and policies (Junos OS, CLI User
    Guide, "insert"): those are tried in the order in which they are first named.
    """
    lines = [line for line in text.splitlines() if line.strip() and line[0] != "#"]
    terms: dict[str, list[str]] = {}
    for line in lines:
        if found := re.match(r"set (.* (?:filter|policy-statement) \S+) term (\S+) ", line):
            terms.setdefault(found[1], [])
            if found[2] not in terms[found[1]]:
                terms[found[1]].append(found[2])
    return frozenset(lines), tuple(sorted((k, tuple(v)) for k, v in terms.items()))


def tree(text: str) -> Hashable:
    """JSON: the values, whatever the order of the keys, none twice, and of lists."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key twice")
        return dict(pairs)

    def frozen(value: object) -> Hashable:
        if isinstance(value, dict):
            return frozenset((k, frozen(v)) for k, v in value.items())
        if isinstance(value, list):
            return frozenset(map(frozen, value)), len(value)
        return type(value).__name__, value

    try:
        return frozen(json.loads(text, object_pairs_hook=once))
    except ValueError as error:
        return "refused", str(error)


def yaml_tree(text: str) -> Hashable:
    """YAML: the same."""
    import yaml

    try:
        return tree(json.dumps(yaml.safe_load(text)))
    except yaml.YAMLError as error:
        return "refused", str(error)[:20]


def settings(text: str) -> Hashable:
    """Lines of a name and a value in any order, the last of a name (opensm(8))."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and line[0] != "#"]
    return frozenset({re.split("[ =]", line)[0]: line for line in lines}.items()), len(lines)


def blocks(text: str) -> Hashable:
    """Blocks of lines in any order, and the lines of each, but for its first."""
    found, here = [], []
    for line in [*text.splitlines(), "Unicast end"]:
        if re.match(r"Unicast|switch_\d+ |adapter ", line) and here:
            found.append((here[0], frozenset(here[1:])))
            here = []
        if line.strip() and line[0] != "#":
            here.append(line)
    return frozenset(found)


def policy(text: str) -> Hashable:
    """A QoS policy: its sections and parts in order, and in any order what stands in a part."""
    parts: list[tuple[str, frozenset[str]]] = []
    here: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if re.match(r"(end-)?(port-group|qos-level|qos-match-rule)s?$", line):
            parts.append((line, frozenset(here)))
            here = []
        elif line and line[0] != "#":
            here.append(line)
    return tuple(parts), tuple(here)


def subnet(text: str) -> Hashable:
    """Devices: attributes above each in any order, and its ports below."""
    found: list[tuple[str, frozenset[str], list[str]]] = []
    above: list[str] = []
    for line in text.splitlines():
        if re.match(r"Ca|Switch", line):
            found.append((line, frozenset(above), []))
            above = []
        elif "=" in line and line[:1] != "#":
            above.append(line)
        elif line and line[0] != "#":
            (found[-1][2] if found else above).append(line.partition("#")[0].strip())
    return frozenset((d, a, frozenset(c)) for d, a, c in found), tuple(above)


def definition(text: str) -> Hashable:
    """A system: its name, its node, and the plugs of that in any order (ibdm-ibnl-file(1))."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    return tuple(map(tuple, lines[:2])), frozenset(map(tuple, lines[2:]))


def statements(text: str) -> Hashable:
    """The lines that say something, in order."""
    return tuple(
        line.strip()
        for number, line in enumerate(text.splitlines())
        if line.strip() and (line.strip()[0] not in "#!" or (not number and line[:2] == "#!"))
    )


MEANINGS: dict[str, Callable[[str], Hashable]] = {
    "eos.cfg": lambda text: cli(text, EOS_MODES),
    "nxos.cfg": lambda text: cli(text, NXOS_MODES),
    "junos.set": junos,
    "avd.json": tree,
    "srlinux.json": tree,
    "config_db.json": tree,
    "startup.yaml": yaml_tree,
    "opensm.conf": settings,
    "hosts.env": settings,
    "lfts.txt": blocks,
    "fabric.topo": blocks,
    "qos-policy.conf": policy,
    "fabric.net": subnet,
    "switch_5.ibnl": definition,
    "sysctl.conf": statements,
    "load.sh": statements,
    "polarfab.service": statements,
}
