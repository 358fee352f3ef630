"""Routing tables of switches against the build: every system's form, every kind of difference."""

import json
import re
from dataclasses import replace
from ipaddress import IPv6Network

import pytest

from compilers.audit.route_report import RouteReport
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.audit.device_tables import (
    DISCARD,
    PRINTERS,
    appl_db,
    frr,
    printed,
    rendered,
    write,
)
from tests.compilers.routed import agreed, routed

CASES = {
    "linux": {"spread": True, "protect": "link"},
    "frr": {"spread": True, "protect": "link"},
    **{system: {"spread": True} for system in ("junos", "sonic", "eos", "nxos")},
    "srlinux": {},
}


@pytest.fixture(scope="module")
def fabrics(tmp_path_factory):
    """By system: the build, and the routes of every switch by its rendered files."""
    made = {}

    def of(system):
        if system not in made:
            build = routed(q=2, hosts=2, **CASES[system])
            plan = replace(build.addressing, ipv6=IPv6Network("fd00::/48"))
            build = replace(build, addressing=plan, identity="0123456789abcdef")
            folder = tmp_path_factory.mktemp(system)
            target(system).render(build, folder)
            made[system] = build, {n: rendered(system, folder / n) for n in build.wiring.names}
        build, routes = made[system]
        return build, {name: dict(found) for name, found in routes.items()}

    return of


def checked(build, routes, folder, system, printer=None, **more):
    for name, found in routes.items():
        write(folder / f"{name}.json", (printer or PRINTERS[system])(found))
    return RouteReport.of(build, [folder], **more)


@pytest.mark.parametrize("system", PRINTERS)
def test_tables_as_rendered_are_right(system, fabrics, tmp_path):
    build, routes = fabrics(system)
    seen: list[tuple[int, int]] = []
    tell = lambda done, total: seen.append((done, total))  # noqa: E731
    report = checked(build, routes, tmp_path, system, progress=tell)
    assert seen == [(done, 7) for done in range(1, 8)]
    assert report.differences == ()
    assert (report.target, report.switches, report.unread) == (system, 7, ())
    assert report.routes >= sum(map(len, routes.values())) >= 7 * 2 * 6


def test_cumulus_linux_shows_the_tables_of_frr(tmp_path):
    build = routed(q=2)
    held = target("nvue").routes_held(*target("nvue").check(build))
    for vertex, name in enumerate(build.wiring.names):
        tables = held(vertex).items()
        flat = {(table, p): variants for table, rows in tables for p, variants in rows.items()}
        write(tmp_path / f"{name}.json", frr(flat))
    report = RouteReport.of(build, [tmp_path], target_name="nvue")
    assert (report.differences, report.switches) == ((), 7)


@pytest.mark.parametrize("system", PRINTERS)
def test_one_route_of_one_switch(system, fabrics, tmp_path):
    """Removed, led elsewhere, added: each is that finding and no other."""
    build, routes = fabrics(system)
    here = routes["5"]
    (gone, turned), (_, other) = list(here)[2:4], list(here)[6:8]
    first, second = here.pop(gone), here[turned]
    others = {*map(frozenset, second), frozenset(DISCARD[0])}
    elsewhere = next(c[0] for c in here.values() if frozenset(c[0]) not in others)
    here[turned] = [elsewhere, *second[1:]]
    extra = other[0], "10.0.0.4/31"
    here[extra] = [elsewhere]
    report = checked(build, routes, tmp_path, system)
    found = {(one.switch, one.table, one.prefix): one for one in report.differences}
    assert len(found) == len(report.differences) == 3
    missing, moved, stale = (found["5", *key] for key in (gone, turned, extra))
    assert (missing.kind, moved.kind, stale.kind) == ("missing", "next hop", "stale")
    assert [sorted(hops) for hops in missing.wanted] == [sorted(hops) for hops in first]
    assert moved.wanted[0] == tuple(sorted(second[0]))
    assert moved.found[0] == stale.found[0] == tuple(sorted(elsewhere))
    assert missing.found == stale.wanted == ()


def test_a_lost_repair_port_and_a_wrong_order(fabrics, tmp_path):
    build, routes = fabrics("linux")
    here = routes["3"]
    deep = [key for key, choices in here.items() if key[0] == "main" and len(choices) > 2]
    here[deep[0]] = here[deep[0]][:-1]
    here[deep[1]] = here[deep[1]][::-1]
    first, second = checked(build, routes, tmp_path, "linux").differences
    assert (first.kind, first.prefix, first.found) == ("missing", deep[0][1], ())
    assert (second.kind, second.prefix) == ("order", deep[1][1])
    assert second.wanted == second.found[::-1]


def test_unequal_shares_are_a_wrong_weight(fabrics, tmp_path):
    build, routes = fabrics("linux")
    here = routes["3"]
    key = next(key for key, choices in here.items() if len(choices[0]) > 1)
    here[key] = [[(*hop[:2], 3 if n else 1) for n, hop in enumerate(here[key][0])]]
    (one,) = checked(build, routes, tmp_path, "linux").differences
    assert (one.kind, one.prefix, {hop[2] for hop in one.wanted[0]}) == ("weight", key[1], {1})
    assert {hop[2] for hop in one.found[0]} == {1, 3}


def test_what_is_not_the_fabrics_is_not_stale(fabrics, tmp_path):
    """A default route, management, another VRF, and what a switch does with its own block."""
    build, routes = fabrics("eos")
    inside, own = "10.0.0.4/31", str(next(build.addressing.network(4).subnets(1)))
    found = [[("192.0.2.1", "Management1", 1)]]
    routes["4"] |= {("main", p): found for p in ("0.0.0.0/0", "10.0.0.0/8", "192.0.2.0/24", own)}
    routes["4"]["mgmt", inside] = found
    assert checked(build, routes, tmp_path, "eos").good
    routes["4"]["main", str(build.addressing.network(5))] = found
    routes["4"]["main", str(next(build.addressing.network(5).subnets(1)))] = found
    kinds = [one.kind for one in checked(build, routes, tmp_path, "eos").differences]
    assert kinds == ["next hop", "stale"]


def test_tables_of_an_earlier_build_are_stale(fabrics, tmp_path):
    """A minimal build whose switches still have the tables by ingress of the one before."""
    build, routes = fabrics("frr")
    minimal = routed(q=2, hosts=2)
    minimal = replace(minimal, addressing=build.addressing, identity="0123456789abcdef")
    report = checked(minimal, routes, tmp_path, "frr")
    assert {one.kind for one in report.differences} == {"stale"}
    assert {"5000", "main"} <= {one.table for one in report.differences}


def test_sonic_by_frr_and_by_its_database(fabrics, tmp_path):
    build, routes = fabrics("sonic")
    assert checked(build, routes, tmp_path / "a", "sonic", frr, target_name="sonic").good
    assert checked(build, routes, tmp_path / "b", "sonic", appl_db).good
    assert not checked(build, routes, tmp_path / "a", "sonic", frr).good


def test_tables_are_of_the_pools_of_the_build(fabrics, tmp_path):
    build, routes = fabrics("eos")
    other = agreed(build, {"links": "100.80.0.0/16"})
    report = checked(other, routes, tmp_path, "eos")
    assert {one.kind for one in report.differences} == {"next hop"}


def test_files_are_named_by_switches(fabrics, tmp_path):
    build, routes = fabrics("frr")
    management = ("192.0.2.9", *build.wiring.management[1:])
    build = replace(build, wiring=replace(build.wiring, management=management))
    one, two, *_ = frr(routes["0"])
    write(tmp_path / "192.0.2.9.ipv4.json", [one, *frr(routes["0"])[2:]])
    write(tmp_path / "0.ipv6.json", [two])
    report = RouteReport.of(build, [tmp_path])
    assert (report.good, report.switches, len(report.unread)) == (True, 1, 6)
    fetched = tmp_path / "1" / "tmp"
    fetched.mkdir(parents=True)
    write(fetched / "routes.json", frr(routes["1"]))
    report = RouteReport.of(build, [tmp_path])
    assert (report.good, report.switches, len(report.unread)) == (True, 2, 5)
    (fetched / "routes.json").unlink()
    write(tmp_path / "leaf7.json", [one])
    write(tmp_path / "1.json", [{"a": 1}])
    with pytest.raises(InputError, match=r"a file named by its switch: 0\.json, given 'leaf7"):
        RouteReport.of(build, [tmp_path])
    (tmp_path / "leaf7.json").unlink()
    with pytest.raises(InputError, match=r"1\.json: required the output of one of: eos: show"):
        RouteReport.of(build, [tmp_path])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"10.0.0.0/29": [', r"2\.json:1: required JSON, given Expecting value in column 18"),
        ('[{"dst": "10.0.0.0/29", "dev": 3, "via": 4, "flags": []}]', "values that it never has"),
        ('[{"dst": "ten", "dev": "e0", "flags": []}]', "values that it never has"),
        (f'[{{"dst": "{"x" * 999}", "dev": "e0", "flags": []}}]', r"never has \(.{159}…\)$"),
        ('{"10.0.0.0/29": [{"nexthops": 3}]}', "values that it never has"),
        ('{"TABLE_vrf": {}}\n{"vrfs": {}}', "one form for all tables of a device"),
        ("% Unknown command", "required JSON, given what a device says: '% Unknown command"),
        ("[" * 100_000, "nesting beyond measure"),
    ],
)
def test_damaged_files(text, message, fabrics, tmp_path):
    build, _ = fabrics("frr")
    (tmp_path / "2.json").write_text(text)
    with pytest.raises(InputError, match=message):
        RouteReport.of(build, [tmp_path / "2.json"])


def test_a_target_without_routes(fabrics, tmp_path):
    build, routes = fabrics("frr")
    with pytest.raises(InputError, match=r"one of bird, .*, nvue, nxos, .*, given target ovs"):
        checked(build, routes, tmp_path, "frr", target_name="ovs")


def leaked(routes):
    """NX-OS names the VRF of a next hop that is in another one."""
    text = json.dumps(PRINTERS["nxos"](routes))
    for (table, prefix), (hops,) in routes.items():
        other = "default" if table != "main" else "hosts" * prefix.endswith(("/32", "/128"))
        for gateway, *_ in hops if other else ():
            said = f'"ipnexthop": "{gateway}'
            text = text.replace(f'{said}"', f'{said}%{other}"')
    return json.loads(text)


def by_bgp(routes):
    """NX-OS names no interface of a path that BGP found."""
    nowhere = {key: hops for key, hops in routes.items() if hops == DISCARD}
    found = {key: hops for key, hops in routes.items() if hops != DISCARD}
    text = json.dumps(PRINTERS["nxos"](found)).replace('"clientname": "static"', '"pref": "20"')
    return [*json.loads(re.sub(r'"ifname": "Eth[^"]*", ', "", text)), *PRINTERS["nxos"](nowhere)]


def test_next_hops_of_nxos_in_another_vrf(fabrics, tmp_path):
    build, routes = fabrics("nxos")
    assert checked(build, routes, tmp_path, "nxos", leaked).differences == ()
    assert "%hosts" in (tmp_path / "5.json").read_text()


def test_paths_of_nxos_that_bgp_found(tmp_path_factory, tmp_path):
    build = routed(q=2)
    folder = tmp_path_factory.mktemp("bgp")
    target("nxos").render(build, folder)
    routes = {name: rendered("nxos", folder / name) for name in build.wiring.names}
    build = agreed(build, {"routing": "bgp"})
    more = {"printer": by_bgp, "target_name": "nxos"}
    assert checked(build, routes, tmp_path, "nxos", **more).differences == ()
    key = next(key for key, hops in routes["5"].items() if hops != DISCARD)
    (((gateway, *_),),) = routes["5"][key]
    wrong = next(h for h in routes["5"].values() if h != DISCARD and h[0][0][0] != gateway)
    routes["5"][key] = wrong
    (found,) = checked(build, routes, tmp_path, "nxos", **more).differences
    assert (found.switch, found.kind, found.prefix) == ("5", "next hop", key[1])


@pytest.mark.parametrize("name", ["nxos", "junos", "srlinux", "nvue"])
def test_routes_that_bgp_finds_are_right_and_a_lost_one_is_named(name, tmp_path):
    build = agreed(routed(q=2, spread=name != "srlinux"), {"routing": "bgp"})
    routes_of = target(name).routes_held(*target(name).check(build))
    printer = PRINTERS.get(name, frr)  # Cumulus Linux is asked by vtysh
    routes = {node: dict(printed(routes_of(v))) for v, node in enumerate(build.wiring.names)}
    for node, of_node in routes.items():
        write(tmp_path / f"{node}.json", printer(of_node))
    assert RouteReport.of(build, [tmp_path], name).differences == ()
    lost = next(key for key, paths in routes["5"].items() if paths[0][0][0] != "discard")
    del routes["5"][lost]
    write(tmp_path / "5.json", printer(routes["5"]))
    (one,) = RouteReport.of(build, [tmp_path], name).differences
    assert (one.switch, one.kind, one.table, one.prefix) == ("5", "missing", *lost)


PROMPTS = {
    "eos": ("! copied by hand\nsw-5#show ip route vrf all | json\n", "\nsw-5#\n"),
    "nxos": ("sw-5# show ip route vrf all | json\n", "\n\nsw-5# \n"),
    "junos": ("user@sw-5> show route | display json\n", "\n\n{master:0}\nuser@sw-5>\n"),
    "srlinux": ("--{ running }--[  ]--\nA:sw-5# info from state x\n", "\n--{ + }--[ ]--\n"),
    "sonic": ("admin@sw-5:~$ sonic-db-dump -n APPL_DB -y\n", "\nadmin@sw-5:~$ \n"),
    "linux": ("root@sw-5:/# ip -json route show table all\n", "\nroot@sw-5:/#\n"),
}


@pytest.mark.parametrize("system", PROMPTS)
def test_a_prompt_and_a_comment_around_the_json(system, fabrics, tmp_path):
    build, routes = fabrics(system)
    path = tmp_path / "5.json"
    write(path, PRINTERS[system](routes["5"]))
    before, behind = PROMPTS[system]
    outputs = path.read_text()
    banner = "\n  *** Authorized users only ***\nLast login: Sat Nov 28 from 192.0.2.7\n\n"
    for top in ("", banner, ":\n"):
        path.write_text(f"{top}{before}{outputs}{behind}")
        assert RouteReport.of(build, [tmp_path]).differences == ()
    path.write_text(f"{before}oops {outputs}")
    with pytest.raises(InputError, match=r"5\.json:.*required JSON"):
        RouteReport.of(build, [tmp_path])
