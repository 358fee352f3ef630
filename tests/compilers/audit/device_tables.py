"""Routing tables in the forms that devices print, made by hand from rendered text.

Each printer takes {(table, prefix): [[(gateway, interface, weight), …], …]}, choices in order, and
gives the outputs of a device, one after the other. The forms are those that the modules of
the modules `routing_tables` cite; only FRR's and the kernel's were seen on real ones.
"""

import json
import re
from ipaddress import ip_interface

from compilers.readers.devices.held_routes import ANY, IPV4_RULES, IPV6_RULES

DISCARD = [[("discard", "", 1)]]


def rendered(system, folder):
    """What the files of a switch say, by searching their lines."""
    return {
        "linux": _linux,
        "frr": _frr,
        "sonic": _sonic,
        "junos": _junos,
        "srlinux": _srlinux,
    }.get(system, _sections)(folder)


def _add(routes, table, prefix, hop):
    routes.setdefault((table, prefix), [[]])[0].append((*hop, 1))


def _sections(folder):
    routes = {}
    (file,) = folder.glob("*.cfg")
    context = ""
    for opened, inside, vrf, prefix, interface, gateway in re.findall(
        r"^(?:vrf context (\S+)|( *)(?:ip|ipv6) route (?:vrf (\S+) )?(\S+) (?:egress-vrf \S+ )?"
        r"(\S+) (\S+)(?: vrf \S+)?)$",
        file.read_text(),
        re.M,
    ):
        if context := opened or (context if inside else ""):
            vrf = context
        if prefix:
            hop = ("discard", "") if interface == "Null0" else (gateway, interface)
            _add(routes, vrf or "main", prefix, hop)
    return routes


def _sonic(folder):
    routes, vrf = {}, ""
    for opened, inside, prefix, gateway, interface in re.findall(
        r"^(?:vrf (\S+)|( ?)ip(?:v6)? route (\S+) (\S+) (\S+).* tag 2)$",
        (folder / "frr.conf").read_text(),
        re.M,
    ):
        if opened:
            vrf = opened
        else:
            hop = ("discard", "") if interface == "254" else (gateway, interface)
            _add(routes, vrf if inside else "main", prefix, hop)
    return routes


def _junos(folder):
    text, routes, networks = (folder / "junos.set").read_text(), {}, []
    for interface, address in re.findall(
        r"interfaces (\S+ unit \d+) family inet6? address (\S+)", text
    ):
        name = interface.replace(" unit ", ".").removesuffix(".0")
        networks.append((ip_interface(address).network, name))
    for where, prefix, tail in re.findall(
        r"^set (.*)static route (\S+) (next-hop \S+|discard)", text, re.M
    ):
        table = where.split()[1] if "instances" in where else "main"
        gateway = tail.removeprefix("next-hop ")
        if gateway == "discard":
            _add(routes, table, prefix, ("discard", ""))
        else:
            address = ip_interface(gateway).ip
            (through,) = {i for network, i in networks if address in network}
            _add(routes, table, prefix, (gateway, through))
    return routes


def _srlinux(folder):
    tree = json.loads((folder / "srlinux.json").read_text())
    instance = tree["srl_nokia-network-instance:network-instance"][0]
    groups = {
        group["name"]: [
            (hop["ip-address"], group["name"].rpartition("-")[0])
            for hop in group.get("nexthop", [])
        ]
        for group in instance["srl_nokia-next-hop-groups:next-hop-groups"]["group"]
    }
    routes = {}
    for route in instance["srl_nokia-static-routes:static-routes"]["route"]:
        for hop in groups[route["next-hop-group"]] or [("discard", "")]:
            _add(routes, "main", route["prefix"], hop)
    return routes


def _linux(folder):
    nexthops, routes = {}, {}
    for line in (folder / "routes.batch").read_text().splitlines():
        match line.split():
            case ["nexthop", "replace", "id", number, "via", gateway, "dev", device, *_]:
                nexthops[number] = [(gateway, device, 1)]
            case ["nexthop", "replace", "id", number, "group", members, *_]:
                pairs = (member.split(",") for member in members.split("/"))
                nexthops[number] = [(*nexthops[i][0][:2], int(weight)) for i, weight in pairs]
            case ["route", "replace", "unreachable", prefix, *_]:
                routes["main", prefix] = DISCARD
            case ["route", "replace", prefix, "nhid", number, "metric", _, "table", table, *_]:
                name = "main" if table == "254" else table
                routes.setdefault((name, prefix), []).append(nexthops[number])
    return routes


def _frr(folder):
    """Distances in order, next hops of one distance together."""
    found, routes = {}, {}
    for prefix, words in re.findall(
        r"^ip(?:v6)? route (\S+) (.*)$", (folder / "frr.conf").read_text(), re.M
    ):
        if words == "reject 254":
            routes["main", prefix] = DISCARD
            continue
        gateway, interface, *rest = words.split()
        distance = int(rest[0]) if rest and rest[0].isdecimal() else 1
        table = rest[rest.index("table") + 1] if "table" in rest else "main"
        by = found.setdefault((table, prefix), {})
        by.setdefault(distance, []).append((gateway, interface, 1))
    return routes | {key: [hops for _, hops in sorted(by.items())] for key, by in found.items()}


def kernel(routes):
    """`ip -json route show table all`; groups are told with their members."""
    entries = []
    for (table, prefix), choices in routes.items():
        where = {} if table == "main" else {"table": table}
        dst = prefix.removesuffix("/32")
        for metric, hops in enumerate(choices, 1):
            common = {"dst": dst, "protocol": "80", "metric": metric, "flags": [], **where}
            tails = [_via(prefix, hop) for hop in hops]
            if hops[0][0] == "discard":
                entries.append({"type": "unreachable", **common, "metric": 4000000000})
            elif len(hops) == 1:
                entries.append({"nhid": 500001, **tails[0], **common})
            else:
                members = [
                    {**tail, "weight": hop[2]} for tail, hop in zip(tails, hops, strict=True)
                ]
                entries.append({"nhid": 600001, **common, "nexthops": members})
    return [entries, [{"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "flags": []}]]


def _via(prefix, hop):
    gateway, device, _ = hop
    other = ":" in gateway and ":" not in prefix
    tail = {"via": {"family": "inet6", "host": gateway}} if other else {"gateway": gateway}
    return {**tail, "dev": device, "flags": []}


def frr(routes):
    """`show ip route table all json` and the same of IPv6: a document a table."""
    documents = {}
    for (table, prefix), choices in routes.items():
        entries = []
        for distance, hops in enumerate(choices, 1):
            best = {"selected": True, "destSelected": True, "installed": True}
            tails = [
                {"unreachable": True, "reject": True, "active": True}
                if hop[0] == "discard"
                else {"ip": hop[0], "interfaceName": hop[1], "active": True, "weight": hop[2]}
                for hop in hops
            ]
            entries.append(
                {
                    "prefix": prefix,
                    "protocol": "static",
                    "vrfName": table if table in ("Vrf-hosts", "hosts") else "default",
                    "table": int(table) if table.isdecimal() else 254,
                    "distance": distance,
                    **(best if distance == 1 else {}),
                    "nexthops": tails,
                }
            )
        documents.setdefault((table, ":" in prefix), {})[prefix] = entries
    return [*documents.values(), {}]


def appl_db(routes):
    """`sonic-db-dump -n APPL_DB -k "ROUTE_TABLE*" -y`."""
    found = {}
    for (table, prefix), (hops,) in routes.items():
        columns = zip(*hops, strict=True)
        gateway, interface, weight = (",".join(map(str, column)) for column in columns)
        value = {"protocol": "static", "ifname": interface, "nexthop": gateway}
        value |= {"weight": weight} if len({hop[2] for hop in hops}) > 1 else {}
        value = {"protocol": "static", "blackhole": "true"} if gateway == "discard" else value
        where = "" if table == "main" else f"{table}:"
        found[f"ROUTE_TABLE:{where}{prefix}"] = {"type": "hash", "value": value}
    return [found]


def eos(routes):
    """`show ip route vrf all | json` and that of IPv6."""
    found = {}
    for (table, prefix), (hops,) in routes.items():
        vias = [{"nexthopAddr": hop[0], "interface": hop[1]} for hop in hops]
        drop = hops[0][0] == "discard"
        found.setdefault((table, ":" in prefix), {})[prefix] = {
            "routeType": "static",
            "routeAction": "drop" if drop else "forward",
            "kernelProgrammed": True,
            "vias": [{"interface": "Null0"}] if drop else vias,
        }
    return [
        {"vrfs": {"default" if table == "main" else table: {"routes": entries}}}
        for (table, _), entries in found.items()
    ]


def nxos(routes):
    """`show ip route vrf all | json` and that of IPv6; a list of one is no list."""
    rows = {}
    for (table, prefix), (hops,) in routes.items():
        paths = [
            {"ifname": "Null0", "ubest": "true"}
            if hop[0] == "discard"
            else {
                "ipnexthop": hop[0],
                "ifname": hop[1].replace("Ethernet", "Eth"),
                "clientname": "static",
                "ubest": "true",
            }
            for hop in hops
        ]
        path = paths[0] if len(paths) == 1 else paths
        row = {"ipprefix": prefix, "ucast-nhops": str(len(hops)), "TABLE_path": {"ROW_path": path}}
        rows.setdefault((table, ":" in prefix), []).append(row)
    return [
        {
            "TABLE_vrf": {
                "ROW_vrf": {
                    "vrf-name-out": "default" if table == "main" else table,
                    "TABLE_addrf": {
                        "ROW_addrf": {
                            "addrf": "ipv6" if six else "ipv4",
                            "TABLE_prefix": {"ROW_prefix": some},
                        }
                    },
                }
            }
        }
        for (table, six), some in rows.items()
    ]


def junos(routes):
    """`show route | display json`."""
    tables = {}
    for (table, prefix), (hops,) in routes.items():
        family = "inet6.0" if ":" in prefix else "inet.0"
        name = family if table == "main" else f"{table}.{family}"
        nhs = [
            {"to": _data(hop[0]), "via": _data(hop[1] + ".0" * ("." not in hop[1]))} for hop in hops
        ]
        tail = {"nh-type": _data("Discard")} if hops[0][0] == "discard" else {"nh": nhs}
        entry = {"active-tag": _data("*"), "protocol-name": _data("Static"), **tail}
        tables.setdefault(name, []).append({"rt-destination": _data(prefix), "rt-entry": [entry]})
    found = [{"table-name": _data(name), "rt": rows} for name, rows in tables.items()]
    return [{"route-information": [{"route-table": found}]}]


def _data(text):
    return [{"data": text}]


def srlinux(routes):
    """`info from state network-instance * route-table | as json`: next hops by number."""
    numbers, unicast = {}, {"ipv4": [], "ipv6": []}
    for (_, prefix), (hops,) in routes.items():
        number = str(numbers.setdefault(hops[0], len(numbers) + 1))
        family = "ipv6" if ":" in prefix else "ipv4"
        route = {f"{family}-prefix": prefix, "active": True, "next-hop-group": number}
        unicast[family].append({"route-owner": "static_route_mgr", **route})
    nexthops = [
        {"index": str(n), "type": "blackhole"}
        if hop[0] == "discard"
        else {
            "index": str(n),
            "type": "direct",
            "ip-address": hop[0],
            "subinterface": f"{hop[1]}.0",
        }
        for hop, n in numbers.items()
    ]
    groups = [
        {"index": hop["index"], "next-hop": [{"id": 0, "next-hop": hop["index"]}]}
        for hop in nexthops
    ]
    table = {
        "srl_nokia-ip-route-tables:ipv4-unicast": {"route": unicast["ipv4"]},
        "srl_nokia-ip-route-tables:ipv6-unicast": {"route": unicast["ipv6"]},
        "srl_nokia-ip-route-tables:next-hop-group": groups,
        "srl_nokia-ip-route-tables:next-hop": nexthops,
    }
    return [
        {
            "srl_nokia-network-instance:network-instance": [
                {"name": "mgmt", "route-table": {}},
                {"name": "default", "route-table": table},
            ]
        }
    ]


PRINTERS = {
    "linux": kernel,
    "frr": frr,
    "sonic": appl_db,
    "eos": eos,
    "nxos": nxos,
    "junos": junos,
    "srlinux": srlinux,
}


def printed(held):
    """What a switch with these routes has; a gateway that BGP learned means but its family."""
    for table, routes in held.items():
        for prefix, paths in routes.items():
            learned = "fe80::1" if ":" in prefix else "169.254.0.1"
            if table not in (IPV4_RULES, IPV6_RULES):
                yield (
                    (table, prefix),
                    [[(learned if h[0] == ANY else h[0], *h[1:]) for h in hops] for hops in paths],
                )


def write(path, documents):
    """The outputs of a device in a file, one after the other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(document) for document in documents))
