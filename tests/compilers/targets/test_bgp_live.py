"""FRR with eBGP when cables die: pulled, silent, or shut down at one end; from any interfaces.

Links are taken down one after the other, and mended. After each change every flow of every pair
arrives again, and once the link is back the kernel has the compiled routes (`Routers.settle`).
"""

import json
import re
from ipaddress import ip_network
from pathlib import Path
from shutil import copytree

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load, save
from compilers.targets.target_lookup import target
from tests.compilers.routed import agreed
from tests.polarfab.forked import printed_apart

pytestmark = pytest.mark.live
JELLYFISH = Path(__file__).parents[3] / "examples" / "jellyfish-64"
CALM_BFD = 1000
"""Milliseconds between packets of BFD where 512 sessions share busy cores; 300 is rendered."""
FIRST = "nice", "-n", "-10"
"""Routers that wait for other tests lose BFD's packets."""
HOLD = 9.0
"""Seconds after which BGP itself gives a silent neighbour up: BFD is sooner."""


SPEC = """name: lab
topology: {{family: polarfly, q: {q}}}
routing: {{balance: {balance}}}
addressing: {{ipv6: "fd00::/48"}}
"""


def compiled(folder, q, balance):
    (folder / "fabric.yaml").write_text(SPEC.format(q=q, balance=balance))
    save(compile_fabric(load_fabric(folder / "fabric.yaml")), folder / "b")
    build = load(folder / "b")
    target("frr").render(agreed(build, {"routing": "bgp", "bfd": "on"}), folder / "out")
    return build


def carried_out(folder, live, wanted, *outs, **more):
    """What `live_bgp` saw of each event."""
    todo = {"live": live, "failures": wanted, **more}
    script = Path(__file__).with_name("live_bgp.py")
    printed = printed_apart(script, folder / "b", json.dumps(todo), *outs, timeout=10000, nice=-10)
    seen = json.loads(printed)
    assert [one["event"] for one in seen] == wanted
    assert not [one for one in seen if "wrong" in one]
    return seen


def failures(folder, q, live, wanted):
    """Cables fail under minimal routes; each kind at least once sooner than BGP alone sees it."""
    edges = compiled(folder, q, "minimal").topology.graph.edges().tolist()
    seen = carried_out(folder, live, wanted(edges), folder / "out")
    for how in {one["event"][0] for one in seen}:
        assert min(one["down"][0] for one in seen if one["event"][0] == how) < HOLD / 2, seen


def tracked(folder, spec, bfd):
    """A build whose static routes follow BFD of so many milliseconds."""
    save(compile_fabric(load_fabric(spec)), folder / "b")
    build = load(folder / "b")
    target("frr").render(agreed(build, {"bfd": "on"}), folder / "out")
    for file in (folder / "out").glob("*/frr.conf"):
        file.write_text(file.read_text().replace("interval 300", f"interval {bfd}"))
    return build.topology.graph.edges().tolist()


@pytest.mark.alone
@pytest.mark.long
def test_every_link_of_jellyfish_64(tmp_path):
    """Links of the example fail one at a time: silent, then pulled. Every pair talks all the time.

    A link loses packets until BFD finds it dead and no longer: a round of all flows arrives then.
    None is lost when it returns; where the kernel's neighbour table is full (gc_thresh3) some were.
    Each kind is at least once sooner than BGP alone: other tests hold the kernel's lock for routes,
    one for all namespaces, for seconds. Kernels have the next hops of their configuration without
    the link, and again with it (`FrrRouter.ready`).
    """
    edges = tracked(tmp_path, JELLYFISH / "fabric.yaml", CALM_BFD)
    wanted = [[how, *edge] for edge in edges for how in ("silence", "pull")]
    seen = carried_out(tmp_path, False, wanted, tmp_path / "out", probe=[1, 1, 1])
    for one in seen:
        assert one["sent"][0] - one["lost"][0] >= 64 * 63, one
        assert one["again"] == [0.0], one
    silent, pulled = seen[::2], seen[1::2]
    assert any(one["lost"][0] for one in silent), seen
    for some in (silent, pulled):
        assert min(one["down"][0] for one in some) < HOLD / 2, seen


def test_static_routes_follow_a_silent_link(tmp_path):
    """Spread with repair in static routes: BFD is heard within seconds, marks included."""
    (tmp_path / "fabric.yaml").write_text(SPEC.format(q=3, balance="spread, protect: link"))
    edge, *_ = tracked(tmp_path, tmp_path / "fabric.yaml", 300)
    (seen,) = carried_out(tmp_path, False, [["silence", *edge]], tmp_path / "out")
    assert seen["down"][0] < HOLD / 2


BY_HAND = Path(__file__).with_name("by_hand.conf")
"""A switch of a fabric of eBGP as an engineer would write it: unnumbered, ECMP, BFD.

Written from FRR's manual (*BGP*: `neighbor PEER interface`, `multipath-relax`, `redistribute`;
*BFD*: *BGP BFD Configuration*; *Basic Setup*: defaults of `datacenter`) before its author had read
a template of ours.
"""


def by_hand(build, folder, out):
    """The same fabric written by hand; what FRR leaves to others stays."""
    copytree(folder / "out", out)
    a, w = build.addressing, build.wiring
    for v, node in enumerate(w.names):
        links = [w.port_name(v, p) for p in w.port[v][w.far[v] >= 0].tolist()]
        known = {
            "node": node,
            "gateway": a.gateway(v),
            "length": a.ipv4_length,
            "six": a.network6(v)[1],
            "port": w.port_name(v, int(w.host_port[v, 0])),
            "number": 65000 + v,
            "neighbours": "".join(f" neighbor {x} interface peer-group FABRIC\n" for x in links),
        }
        (out / node / "frr.conf").write_text(BY_HAND.read_text().format(**known))
        (out / node / "rules.batch").write_text("")
    return out


SLACK = 1.0
"""Seconds that two fabrics on one machine may differ by."""


def beside_by_hand(folder, q, events):
    """Alternates with repair lose traffic no longer than eBGP by hand, in each event.

    Of a restart of bgpd hardly more datagrams are lost: `test_restarts_live` has the medians.
    Nothing is lost for good, and every path of every share is back (`FrrRouter.ready`).
    """
    build = compiled(folder, q, "compact-valiant")
    edges = build.topology.graph.edges().tolist()
    outs = folder / "out", by_hand(build, folder, folder / "hand")
    seen = carried_out(folder, True, events(edges), *outs)
    assert seen[-1]["event"][0] == "drain"
    assert seen[-1]["lost"][0] <= seen[-1]["lost"][1]  # where nothing was done
    for one in seen:
        ours, theirs = one["down"]
        if one["event"][0] == "restart":
            assert one["lost"][0] < 1.5 * one["lost"][1] + 20, one
        else:
            assert ours < theirs + SLACK, one
        assert max(one["again"]) < HOLD, one


def every_event(edges):
    (a, b), (c, d), *_ = edges
    apart = next(edge for edge in edges if not {*edge} & {a, b})
    return [
        ["pull", a, b],
        ["silence", c, d],
        ["shut", *apart],
        ["kill", b],
        ["pull_two", a, b, *apart],
        ["restart", a],
        ["drain", c],
    ]


@pytest.mark.long
def test_alternates_beside_a_fabric_by_hand(tmp_path):
    beside_by_hand(tmp_path, 3, every_event)


@pytest.mark.long
def test_alternates_beside_a_fabric_by_hand_of_q4(tmp_path):
    beside_by_hand(tmp_path, 4, every_event)


MORE = 123
"""Prefixes of a switch and family besides its own: at least 992 of others share three next hops."""


def further(v):
    """[[IPv4 prefix…], [IPv6 prefix…]] of a switch."""
    return [
        [ip_network(f"10.{v + 1}.{k}.0/30") for k in range(MORE)],
        [ip_network(f"fd00:0:0:{256 * (v + 1) + k:x}::/64") for k in range(MORE)],
    ]


@pytest.mark.long
def test_alternates_of_992_prefixes(tmp_path):
    """All are in the kernel, and again after a failure (`FrrRouter.ready`); the last ones talk."""
    build = compiled(tmp_path, 3, "compact-valiant")
    a, (edge, other, *_) = build.addressing, build.topology.graph.edges().tolist()
    everyone = range(len(build.wiring.names))
    more = {str(a.network(v)): further(v)[0] for v in everyone}
    more |= {str(a.network6(v)): further(v)[1] for v in everyone}
    for v, name in enumerate(build.wiring.names):
        file = tmp_path / "out" / name / "frr.conf"
        text = re.sub(r"(?m)^(ip.* permit )\S+( ge 30.*)", r"\g<1>10.0.0.0/8\2", file.read_text())
        text = re.sub(r"(?m)^(ip.* permit )\S+( ge 64.*)", r"\1fd00::/48\2", text)
        lines = [line.split(" ") for line in text.splitlines()]
        shared = {words[2] for words in lines if words[1:2] == ["route"] and "table" in words}
        assert len(shared) * (MORE + 1) >= 2 * 992
        written = []
        for words in lines:
            written.append(" ".join(words))
            if "network" in words:
                written += [f"  network {prefix}" for prefix in more.get(words[-1], [])]
            if words[1:2] == ["route"] and "table" in words:
                written += [" ".join([*words[:2], str(p), *words[3:]]) for p in more[words[2]]]
            if words[1:] == ["description", "hosts"]:
                four, six = (prefixes[-1] for prefixes in further(v))
                written += [f" ip address {four[1]}/30", f" ipv6 address {six[1]}/64"]
        file.write_text("\n".join([*written, ""]))
    talk = [[f"{p[-1][2]}/{p[-1].prefixlen}" for p in further(v)] for v in everyone]
    wanted = [["pull", *edge], ["silence", *other]]
    seen = carried_out(tmp_path, True, wanted, tmp_path / "out", more=talk, probe=[1, 0.2, 10])
    assert all(one["down"][0] < HOLD / 2 for one in seen), seen


@pytest.mark.long
def test_dead_cables(tmp_path):
    """The quick case: one of each kind, where interfaces had addresses already."""
    failures(
        tmp_path,
        2,
        True,
        lambda edges: [["pull", *edges[0]], ["silence", *edges[3]], ["shut", *edges[6]]],
    )


@pytest.mark.long
@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("how", ["pull", "silence"])
def test_every_cable_of_q3(how, live, tmp_path):
    failures(tmp_path, 3, live, lambda edges: [[how, *edge] for edge in edges])


@pytest.mark.long
def test_one_end_of_every_third_cable_of_q3(tmp_path):
    failures(tmp_path, 3, True, lambda edges: [["shut", *edge] for edge in edges[::3]])


@pytest.mark.long
def test_cables_of_q4(tmp_path):
    kinds = ("pull", "silence")
    failures(
        tmp_path, 4, True, lambda edges: [[k, *e] for e in edges[:: len(edges) // 4] for k in kinds]
    )
