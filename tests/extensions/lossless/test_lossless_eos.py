"""Lossless priorities of EOS: paths and marks of the emitted text, AVD's words, wrong lines."""

import json
import re
from graphlib import CycleError
from ipaddress import ip_interface
from itertools import pairwise

import pytest

from compilers.targets.target_lookup import target
from tests.extensions.lossless.lossless_fabrics import order, rendered_once

rendered = pytest.fixture(scope="module")(rendered_once)


def paths(out):
    """Of target eos: for every node and prefix of another the links of the path, and its mark."""
    texts = {f.name: (f / "eos.cfg").read_text() for f in out.iterdir()}
    owner = {a: (n, i) for n, i, a in addresses(texts) if "/31" in a}
    home = {str(ip_interface(a).network): n for n, i, a in addresses(texts) if i == "Vlan2"}
    owner = {a.partition("/")[0]: end for a, end in owner.items()}
    route = re.compile(r"^ip route (\S+) (Ethernet\S+) (\S+)$", re.M)
    routes = {n: {p: (i, owner[g][0]) for p, i, g in route.findall(t)} for n, t in texts.items()}
    entry = re.compile(r"^   \d+ permit ip any (\S+) dscp (\d+)$", re.M)
    for node, text in texts.items():
        wrong = {(prefix, int(dscp)) for prefix, dscp in entry.findall(text)}
        for prefix, end in home.items():
            links, at = [], node
            while at != end:
                port, following = routes[at][prefix]
                links, at = [*links, (at, port)], following
            marks = {26, 34} - {dscp for p, dscp in wrong if p == prefix}
            yield links, marks


def addresses(texts):
    """Node, interface and address of every IPv4 address."""
    for node, text in texts.items():
        port = ""
        for line in text.splitlines():
            match line.split():
                case ["interface", port]:
                    pass
                case ["ip", "address", address]:
                    yield node, port, address


def test_pairs_keep_one_priority_and_no_priority_has_a_cycle(rendered):
    waits, single = {26: {}, 34: {}}, {}
    for links, marks in paths(rendered("pairs", "minimal")[1]):
        assert len(links) in (0, 1, 2)
        assert len(marks) == (1 if links else 2)
        for known in [waits[mark] for mark in marks] + [single]:
            for link in links:
                known.setdefault(link, set())
            for link, following in pairwise(links):
                known[link].add(following)
    for known in waits.values():
        assert len(order(known)) == len(known) > 0
    with pytest.raises(CycleError):
        order(single)


EOS_CHANGES = [
    ("qos map dscp 34 to traffic-class 4", "qos map dscp 34 to traffic-class 3"),
    ("qos map dscp 26 to", "qos map dscp 26 27 to"),
    ("qos map traffic-class 4 to tx-queue 4", "qos map traffic-class 4 to tx-queue 3"),
    ("   10 permit ip any 10.0.0.0/29 dscp", "   10 permit ip any 10.0.0.8/29 dscp"),
    ("      set traffic-class 1", "      set traffic-class 3"),
    ("   match ip access-group lossless-wrong", "   match ip access-group lossless-wrong-ipv6"),
    ("   priority-flow-control priority 4 no-drop\n", ""),
    ("   service-policy type qos input lossless\n", ""),
    ("   service-profile lossless-fabric\n", ""),
    ("ecn minimum-threshold 1048576", "ecn minimum-threshold 10485"),
    ("policy-map type quality-of-service lossless", "policy-map type quality-of-service other"),
]


@pytest.mark.parametrize(
    ("old", "new", "both"),
    [*((*words, True) for words in EOS_CHANGES), *((*words, False) for words in EOS_CHANGES[:3])],
)
def test_a_wrong_line_is_seen(old, new, both, rendered, tmp_path):
    build, out = rendered("pairs", "minimal")
    node = build.wiring.names[3]
    (tmp_path / node).mkdir()
    tree = json.loads((out / node / "avd.json").read_text())
    text = (out / node / "eos.cfg").read_text()
    assert old in text
    (tmp_path / node / "eos.cfg").write_text(text.replace(old, new, 1))
    if both:
        tree["eos_cli"] = tree["eos_cli"].replace(old, new, 1)
    (tmp_path / node / "avd.json").write_text(json.dumps(tree, indent=2))
    report = target("eos").check_emitted(build, tmp_path, {"lossless": "pairs"}, only={3})
    assert report.differences > 0


def test_avd_prints_the_same_words(rendered, pyavd):
    """The commands of a switch, from AVD's own keys in the place of text."""
    build, out = rendered("pairs", "minimal")
    text = (out / build.wiring.names[3] / "eos.cfg").read_text()
    commands = text[text.index("qos map dscp") :]
    maps = re.findall(r"^qos map (dscp|traffic-class) (.*)$", commands, re.M)
    lists = {"ip": [], "ipv6": []}
    for number, word, prefix, dscp in re.findall(r"(\d+) permit (\w+) any (\S+) dscp (\d+)", text):
        lists[word].append((int(number), prefix, dscp))
    names = ["lossless-wrong", "lossless-wrong-ipv6"]
    threshold = {
        "units": "bytes",
        "min": 1 << 20,
        "max": 1 << 21,
        "max_probability": 5,
        "weight": 0,
    }
    queues = [{"id": n, "random_detect": {"ecn": {"threshold": threshold}}} for n in (3, 4)]
    profile = {
        "trust": "dscp",
        "priority_flow_control": {
            "enabled": True,
            "priorities": [{"priority": n, "no_drop": True} for n in (3, 4)],
        },
        "uc_tx_queues": [*queues, {"id": 6, "priority": "priority strict"}],
    }
    policy = {"service_policy": {"type": {"qos_input": "lossless"}}}
    config = {
        "hostname": "leaf3",
        "qos": {
            "map": {
                "dscp": [said for word, said in maps if word == "dscp"],
                "traffic_class": [said for word, said in maps if word != "dscp"],
            }
        },
        "ip_access_lists": [
            {
                "name": names[0],
                "entries": [
                    {
                        **{"sequence": n, "action": "permit", "protocol": "ip", "source": "any"},
                        **{"destination": prefix, "dscp": dscp},
                    }
                    for n, prefix, dscp in lists["ip"]
                ],
            }
        ],
        "ipv6_access_lists": [
            {
                "name": names[1],
                "sequence_numbers": [
                    {"sequence": n, "action": f"permit ipv6 any {prefix} dscp {dscp}"}
                    for n, prefix, dscp in lists["ipv6"]
                ],
            }
        ],
        "class_maps": {
            "qos": [
                {"name": name, word: {"access_group": name}}
                for name, word in zip(names, ("ip", "ipv6"), strict=True)
            ]
        },
        "policy_maps": {
            "qos": [
                {
                    "name": "lossless",
                    "classes": [
                        {"name": name, "set": {"dscp": "0", "traffic_class": 1}} for name in names
                    ],
                }
            ]
        },
        "qos_profiles": [
            {"name": "lossless-fabric", **profile},
            {"name": "lossless-host", **profile, **policy},
        ],
    }
    validated = pyavd.validate_structured_config(config)
    assert not validated.validation_result.violations
    printed = pyavd.get_device_config(config)
    assert sorted(said(printed)) == sorted([*said(commands), "hostname leaf3"])


def said(text):
    return [line for line in text.splitlines() if line.strip() not in ("", "!")]
