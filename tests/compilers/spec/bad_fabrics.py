"""Wrong inputs by name: the text of fabric.yaml, and of inventory.yaml where it matters."""

LAB = "name: lab\ntopology: {family: polarfly, q: 2}\n"
WITH = LAB + "inventory: inventory.yaml\n"
TYPE = "node_types:\n  leaf: {ports: [{count: 4}]}\n"
SEVEN = "".join(f"  - {{name: n{i}, type: leaf}}\n" for i in range(7))


def nodes(first: str) -> str:
    """An inventory of seven nodes, of which the first is `first`."""
    others = "".join(f"  - {{name: n{i}, type: leaf}}\n" for i in range(1, 7))
    return f"{TYPE}nodes:\n  - {first}\n{others}"


def ports(blocks: str) -> str:
    """An inventory of seven nodes whose type has these port blocks."""
    return f"node_types:\n  leaf:\n    ports:\n{blocks}nodes:\n{SEVEN}"


FABRICS: dict[str, str | bytes] = {
    "empty": "",
    "only-comments": "# nothing yet\n\n",
    "not-utf8": b"name: lab\n# caf\xe9\ntopology: {family: polarfly, q: 2}\n",
    "utf16": "name: lab\n".encode("utf-16"),
    "control-character": "name: lab\n# \x07\n",
    "tab": "name: lab\ntopology:\n\tfamily: polarfly\n",
    "open-bracket": "name: lab\ntopology: {family: polarfly, q: 7\n",
    "two-colons": "name: lab: x\n",
    "list-at-top": "- name: lab\n",
    "text-at-top": "lab\n",
    "two-documents": LAB + "---\n" + LAB,
    "duplicate-keys": LAB + "name: lab2\ntopology:\n  q: 1\n  q: 3\n",
    "list-as-key": "name: lab\n? [a, b]\n: c\n",
    "tag": "name: !!python/name:os.system lab\ntopology: {family: polarfly, q: 2}\n",
    "no-such-alias": "name: *lab\n",
    "alias-of-itself": "name: &a [*a]\n",
    "merge-of-text": "name: lab\ntopology:\n  <<: polarfly\n",
    "deep": "name: " + "[" * 20_000,
    "bomb": "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 10)}]\n" for i in range(9)
    ),
    "unknown-keys": "name: lab\ntopologie: {family: polarfly, q: 2}\nhosts-per-node: 1\nzzz: 1\n",
    "missing-keys": "hosts_per_node: 1\ntopology: {}\n",
    "empty-section": "name: lab\ntopology:\nrouting:\n",
    "section-is-text": "name: lab\ntopology: polarfly\naddressing: [10.0.0.0/8]\n",
    "bad-names": "name: ../etc/passwd\ntopology: {family: polarfly, q: 2}\n",
    "long-name": f"name: {'x' * 64}\ntopology: {{family: polarfly, q: 2}}\n",
    "name-nothing": "name:\ntopology: {family: polarfly, q: 2}\n",
    "q-float": "name: lab\ntopology: {family: polarfly, q: 7.0}\n",
    "q-yes": "name: lab\ntopology: {family: polarfly, q: yes}\n",
    "q-true": "name: lab\ntopology: {family: polarfly, q: true}\n",
    "q-quoted": 'name: lab\ntopology: {family: polarfly, q: "7"}\n',
    "q-list": "name: lab\ntopology: {family: polarfly, q: [7]}\n",
    "q-six": "name: lab\ntopology: {family: polarfly, q: 6}\n",
    "q-negative": "name: lab\ntopology: {family: polarfly, q: -7}\n",
    "q-huge": "name: lab\ntopology: {family: polarfly, q: 1000003}\n",
    "q-beyond-words": f"name: lab\ntopology: {{family: polarfly, q: {'9' * 400}}}\n",
    "family-mistyped": "name: lab\ntopology: {family: polarfyl, q: 2}\n",
    "surplus-parameter": "name: lab\ntopology:\n  family: polarfly\n  q: 2\n  degree: 3\n",
    "supernode-mistyped": LAB.replace("2}", "2, supernode: inductive-kwad}"),
    "hosts-out-of-range": LAB + "hosts_per_node: 1025\n",
    "pool-small": LAB + "hosts_per_node: 5\naddressing:\n  ipv4: 10.0.0.0/27\n  ipv6: fd00::/63\n",
    "pool-longer-than-64": LAB + "addressing: {ipv6: 'fd00::/80'}\n",
    "pool-host-bits": LAB + "addressing: {ipv4: 10.0.0.1/8, ipv6: 'fd00::1/48'}\n",
    "pool-no-length": LAB + "addressing: {ipv4: 10.0.0.0}\n",
    "pool-nonsense": LAB + "addressing: {ipv4: 10.0.0/8, ipv6: 7}\n",
    "pool-wrong-family": LAB + "addressing: {ipv4: 'fd00::/48', ipv6: 10.0.0.0/8}\n",
    "pool-multicast": LAB + "addressing: {ipv4: 224.0.0.0/8, ipv6: 'ff00::/16'}\n",
    "pool-of-everything": LAB + "addressing: {ipv4: 0.0.0.0/0}\n",
    "gateway-multicast": LAB + "addressing: {gateway_mac: 03:00:00:00:00:01}\n",
    "gateway-zero": LAB + "addressing: {gateway_mac: 00:00:00:00:00:00}\n",
    "gateway-marked": "name: lab\ntopology: {family: polarfly, q: 3}\n"
    "routing: {balance: spread}\naddressing: {gateway_mac: 02:00:00:80:00:01}\n",
    "gateway-dashes": LAB + "addressing: {gateway_mac: 02-00-00-00-00-01}\n",
    "routing-shares": LAB
    + "routing:\n  balance: compact-valiant\n  minimal_share: 1/0\n  disjoint: node\n",
    "routing-share-range": LAB + "routing:\n  balance: compact-valiant\n  minimal_share: 1/(q-\n",
    "routing-share-code": LAB + "routing: {minimal_share: __import__('os')}\n",
    "routing-valiant-and-more": LAB
    + "routing: {balance: valiant, adjacent: bounce, disjoint: edge, minimal_share: 1/2}\n",
    "routing-bounce-alone": LAB + "routing: {adjacent: bounce}\n",
    "routing-spread-in-pn": "name: lab\ntopology: {family: pn, q: 5}\nrouting: {balance: spread}\n",
    "routing-spread-and-more": "name: lab\ntopology: {family: polarfly, q: 3}\n"
    "routing:\n  balance: spread\n  adjacent: bounce\n"
    "  disjoint: edge\n  demand: worst-case\n",
    "routing-bounce-mistyped": LAB + "routing: {adjacent: bounced}\n",
    "routing-mistyped": LAB + "routing: {balance: minimum, protect: links}\n",
    "inventory-missing": LAB + "inventory: nowhere.yaml\n",
    "inventory-directory": LAB + "inventory: .\n",
    "inventory-number": LAB + "inventory: 7\n",
    "inventory-nul": LAB + 'inventory: "a\\0b"\n',
    "several": "name: a/b\ntopology: {family: polarfly, q: 6}\nhosts_per_node: many\n"
    "addressing: {ipv4: 10.0.0.1/8}\nrouting: {protect: node}\ninventry: x.yaml\n",
    **{
        f"clusters-{clusters}-of-{q}": "name: lab\n"
        f"topology: {{family: polarfly-expanded, q: {q}, clusters: {clusters}}}\n"
        for q, clusters in [
            (4, "nucleus"),
            (4, "nucleus:2"),
            (4, "fan:x"),
            (4, "fan:9"),
            (4, "quadric:1"),
            (4, "rack:1"),
            (97, "fan:1"),
        ]
    },
}

INVENTORIES: dict[str, str] = {
    "inv-empty": "",
    "inv-no-nodes": TYPE + "nodes: []\n",
    "inv-no-types": "node_types: {}\nnodes:\n" + SEVEN,
    "inv-missing-nodes": TYPE,
    "inv-unknown-type": nodes("{name: n0, type: leef}"),
    "inv-unlike-type": nodes("{name: n0, type: 12345}"),
    "inv-names": nodes("{name: N1, type: leaf, hosts: [{name: n2}]}"),
    "inv-bad-names": nodes("{name: .., type: leaf, hosts: [{name: a/b}]}"),
    "inv-same-vertex": TYPE + "nodes:\n  - {name: a, type: leaf, vertex: 3}\n"
    "  - {name: b, type: leaf, vertex: 3}\n" + SEVEN,
    "inv-same-asn": TYPE + "nodes:\n  - {name: a, type: leaf, asn: 65001}\n"
    "  - {name: b, type: leaf, asn: 65001}\n  - {name: c, type: leaf, asn: 65535}\n"
    "  - {name: d, type: leaf, asn: 0}\n" + SEVEN,
    "inv-buffer": TYPE.replace(
        "}]}",
        "}], buffer: {priorities: [3, 3], size: 9, cell: 1, cable: 1, reaction: 1, "
        "ecn_min: 5, ecn_max: 4, ecn_percent: 5}}",
    )
    + f"nodes:\n{SEVEN}",
    "inv-same-datapath": TYPE + "nodes:\n  - {name: a, type: leaf, datapath_id: 0xff}\n"
    "  - {name: b, type: leaf, datapath_id: 255}\n" + SEVEN,
    "inv-same-management": TYPE + "nodes:\n  - {name: a, type: leaf, management: 'fd00::1'}\n"
    "  - {name: b, type: leaf, management: 'FD00:0::1'}\n" + SEVEN,
    "inv-same-mac": TYPE + "nodes:\n  - {name: a, type: leaf, hosts: [{mac: 52:54:00:00:00:AA}]}\n"
    "  - {name: b, type: leaf, hosts: [{mac: 52:54:00:00:00:aa}]}\n" + SEVEN,
    "inv-bad-values": nodes(
        "{name: n0, type: leaf, vertex: -1, datapath_id: 0, management: sw1.lab, hosts: none}"
    ),
    "inv-datapath-decimal": nodes("{name: n0, type: leaf, datapath_id: 1234567890123456}"),
    "inv-datapath-quoted": nodes('{name: n0, type: leaf, datapath_id: "17"}'),
    "inv-datapath-large": nodes("{name: n0, type: leaf, datapath_id: 0x10000000000000000}"),
    "inv-management-multicast": nodes("{name: n0, type: leaf, management: 224.0.0.1}"),
    "inv-host-mac": nodes("{name: n0, type: leaf, hosts: [{mac: 01:00:5e:00:00:01}]}"),
    "inv-too-many-hosts": nodes("{name: n0, type: leaf, hosts: [{}, {}]}"),
    "inv-unknown-key": nodes("{name: n0, type: leaf, datapath-id: 7, vortex: 3}"),
    "inv-no-name": nodes("{nmae: n0, type: leaf}"),
    "inv-port-names": ports(
        "    - {name: '{x}', count: 2}\n    - {name: '{0.__class__}', count: 2}\n"
        "    - {name: '{}{}', count: 2}\n    - {name: 'a b{}', count: 2}\n"
        "    - {name: '', count: 1}\n"
    ),
    "inv-port-no-number": ports("    - {name: uplink, count: 4}\n"),
    "inv-ports-collide": ports("    - {count: 4}\n    - {count: 4, first: 4}\n"),
    "inv-port-values": ports("    - {count: 0, first: -1, role: fabrik}\n    - {count: 2.5}\n"),
    "inv-no-ports": "node_types:\n  leaf: {ports: []}\nnodes:\n" + SEVEN,
    "inv-too-many-ports": ports("    - {name: 'a{}', count: 65000}\n    - {count: 65000}\n"),
    "inv-many-alike": TYPE + "nodes:\n" + SEVEN.replace("type: leaf", "type: leef") * 3,
    "inv-short-of-ports": "node_types:\n  leaf:\n    ports: [{count: 2, role: fabric}, "
    "{name: 'h{}', count: 1, role: host}]\n"
    "  ok: {ports: [{count: 9}]}\n"
    "nodes:\n  - {name: a, type: ok}\n" + SEVEN,
    "inv-too-few-nodes": TYPE + "nodes:\n  - {name: a, type: leaf, vertex: 8}\n",
    "inv-usual-name": nodes("{name: h3, type: leaf, vertex: 0, datapath_id: 2, asn: 4200000001}"),
    "inv-usual-mac": nodes("{name: n0, type: leaf, vertex: 0, hosts: [{mac: 02:00:00:01:00:01}]}"),
    "inv-gateway-mac": nodes("{name: n0, type: leaf, hosts: [{mac: 02:50:46:00:00:01}]}"),
    "inv-state": nodes("{name: n0, type: leaf, state: plannd, disabled_ports: eth1}"),
    "inv-disabled-ports": nodes("{name: n0, type: leaf, disabled_ports: [eth9, eth1, port]}")
    + "  - {name: spare, type: leaf, disabled_ports: [eth0]}\n",
    "inv-dead-link": f"{TYPE}nodes:\n{SEVEN}dead_links: [{{a: n1}}]\n",
    "inv-dead-links": f"{TYPE}nodes:\n{SEVEN}dead_links:\n  - {{a: n0, b: n0}}\n"
    "  - {a: m0, b: zz}\n  - {a: n0, b: n1}\n",
    "inv-dead-links-of-none": f"{TYPE}nodes:\n{SEVEN}  - {{name: spare, type: leaf}}\n"
    "dead_links:\n  - {a: spare, b: n1}\n  - {a: n0, b: n4}\n  - {a: n0, b: n1}\n",
    "inv-apart": f"{TYPE}nodes:\n{SEVEN}dead_links: [{{a: n0, b: n1}}, {{a: n0, b: n3}}, "
    "{a: n5, b: n0}, {a: n2, b: n3}, {a: n2, b: n6}]\n",
    "inv-alone": TYPE
    + "nodes:\n"
    + SEVEN.replace("n5, type: leaf", "n5, type: leaf, state: planned")
    + "dead_links: [{a: n0, b: n1}, {a: n0, b: n3}]\n",
    "inv-all-planned": TYPE + "nodes:\n" + SEVEN.replace("leaf}", "leaf, state: planned}"),
}
