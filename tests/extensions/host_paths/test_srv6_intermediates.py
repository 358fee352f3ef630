"""Hosts that send packets over every switch alike: the carriers, and kernels that forward them."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.proof.explanation import explain
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import save
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.readers.emitted import check
from tests.extensions.host_paths.read_srv6 import cables, carried, read_frr, read_host, read_switch
from tests.polarfab.forked import printed_apart

FLOWS = 2600
STRAY = 12
"""Packets of neighbour discovery and refusals on a link while flows are counted."""


def compiled(topology, **routing):
    spec = {"name": "lab", "topology": topology, "addressing": {"ipv6": "fd00::/48"}}
    return compile_fabric(load_fabric({**spec, "routing": {"balance": "valiant", **routing}}))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A fabric of 13 switches, saved, with the files of its switches and hosts."""
    folder = tmp_path_factory.mktemp("srv6")
    build = save(compiled({"family": "polarfly", "q": 3}), folder / "b")
    target("srv6").render(build, folder / "out" / "host")
    target("linux").render(build, folder / "out" / "linux", options={"intermediates": "hosts"})
    return build, folder


@pytest.mark.parametrize(
    "topology",
    [{"family": "polarfly", "q": 3}, {"family": "hyperx", "sides": "2x3"}],
    ids=lambda topology: topology["family"],
)
def test_a_host_has_one_route_over_every_switch_alike(topology, tmp_path):
    build = compiled(topology)
    build = save(build, tmp_path / "b")
    target("srv6").render(build, tmp_path / "out")
    names, cable = build.wiring.names, cables(build)
    switches = [read_switch(tmp_path / "out" / name) for name in names]
    assert switches[0] == read_frr(tmp_path / "out" / names[0])
    for source in range(0, len(names), 1 + len(names) // 4):
        (routes,) = read_host(tmp_path / "out" / "hosts" / f"h{source}").values()
        assert set(routes.values()) == {1}
        ends = []
        for carrier in routes:
            path, left = carried(cable, switches, source, carrier)
            ends.append(path[-1] if path else source)
            assert left == (0x1001 + ends[-1], 0xE000)
            assert path == list(explain(build, source, ends[-1]).minimal[1:])
        assert sorted(ends) == list(range(len(names)))
    assert not check("srv6", build, tmp_path / "out").differences


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("hosts/h5/host.batch", "fc00:0:1003:e000::", "fc00:0:1004:e000::"),
        ("hosts/h5/host.batch", "1000003,1/", ""),
        ("hosts/h5/host.batch", "1000003,1/", "1000003,2/"),
        ("hosts/h5/host.batch", "route replace fd00::/48", "route replace fd00::/49"),
        ("5/srv6.batch", "action End.DT6 table main", "action End.DT6 table 7"),
        ("5/srv6.batch", "route replace fc00:0:1003::/48 via", "# fc00:0:1003::/48 via"),
    ],
)
def test_what_hosts_are_given_is_read_back(small, file, old, new, tmp_path):
    build, _ = small
    target("srv6").render(build, tmp_path / "out")
    path = tmp_path / "out" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert check("srv6", build, tmp_path / "out").differences


def test_switches_hold_minimal_routes_where_hosts_draw(small):
    build, folder = small
    assert not check(
        "linux", build, folder / "out" / "linux", {"intermediates": "hosts"}
    ).differences
    with pytest.raises(InputError, match="target linux cannot do packets that carry an intermed"):
        target("linux").render(build, folder / "no")


def test_more_than_a_group_holds_are_refused(tmp_path):
    build = save(compiled({"family": "polarfly", "q": 11}), tmp_path / "b")
    with pytest.raises(InputError, match=r"at most 120 intermediates for target srv6.* with 133"):
        target("srv6").render(build, tmp_path / "out")


@pytest.fixture(scope="module")
def live(small):
    _, folder = small
    script = Path(__file__).with_name("live_srv6.py")
    orders = json.dumps({"ping": True, "flows": [[0, 2, FLOWS], [4, 11, FLOWS]]})
    printed = printed_apart(script, str(folder / "b"), str(folder / "out"), orders, timeout=300)
    return json.loads(printed)


@pytest.mark.live
def test_every_pair_answers(live):
    """The second leg takes hops from the packet: 0 to 2 links, and the switch where it begins."""
    for s, row in enumerate(live["pings"]):
        assert all(ttl in (63, 62, 61) for d, ttl in enumerate(row) if s != d)


@pytest.mark.live
@pytest.mark.parametrize(("number", "pair"), [(0, (0, 2)), (1, (4, 11))])
def test_every_link_has_what_all_intermediates_send_over_it(small, live, number, pair):
    build, _ = small
    expected = dict.fromkeys(((s, int(d)) for s in range(13) for d in build.wiring.far[s]), 0)
    for r in range(13):
        for path in (explain(build, pair[0], r).minimal, explain(build, r, pair[1]).minimal):
            for link in pairwise(path):
                expected[link] += FLOWS / 13
    for s, sent in enumerate(live["flows"][number]):
        for d, packets in zip(build.wiring.far[s].tolist(), sent, strict=False):
            mean = expected[s, d]
            assert abs(packets - mean) <= 5 * mean**0.5 + STRAY, (s, d, packets, mean)
