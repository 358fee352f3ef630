"""Files of targets with eBGP: golden ones, AVD's and FRR's own parsers, AS numbers, refusals."""

import re
from dataclasses import replace

import pytest
import yaml

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.readers.emitted import write
from tests.compilers.routed import agreed, routed
from tests.compilers.targets.makers import fabric
from tests.vtysh import NEEDS_VTYSH, judged

BGP = {"routing": "bgp"}
SYSTEMS = ("eos", "junos", "nvue", "nxos", "sonic", "srlinux")
TIES, SEVERAL = fabric("pn", q=2), fabric(q=2, hosts=3)
SHARED = fabric(q=3, spread=True)


@pytest.mark.parametrize("name", SYSTEMS)
def test_golden(name, tmp_path, golden):
    build = replace(TIES, identity="0123456789abcdef")
    target(name).render(agreed(build, BGP), tmp_path, only=[0])
    for path in sorted((tmp_path / "0").iterdir()):
        golden(path.read_text(), f"{name}_bgp_{path.name}")


@NEEDS_VTYSH
@pytest.mark.parametrize("build", [TIES, SHARED])
def test_vtysh_accepts_the_speakers(build, tmp_path):
    for name, more in (("sonic", {}), ("sonic", {"unnumbered": "on"}), ("frr", {})):
        out = tmp_path / "-".join([name, *more])
        target(name).render(agreed(build, BGP | {"bfd": "on"} | more), out, only=[0])
        path = out / build.wiring.names[0] / "frr.conf"
        assert judged(path) == (0, "", "")


@NEEDS_VTYSH
def test_vtysh_takes_the_lines_of_many_neighbours(tmp_path):
    """It takes 4,096 characters a line; every neighbour is in one of the rows."""
    links = [f"{leaf} {spine + 2}\n" for leaf in (0, 1) for spine in range(370)]
    (tmp_path / "links.txt").write_text("".join(links))
    (tmp_path / "fabric.yaml").write_text(
        "name: wide\ntopology: {family: graph, file: links.txt}\n"
    )
    build = compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
    target("frr").render(agreed(build, BGP), tmp_path / "out", only=[0])
    path = tmp_path / "out" / build.wiring.names[0] / "frr.conf"
    assert judged(path) == (0, "", "")
    text = path.read_text()
    rows = re.findall(r"(?m)^bgp as-path access-list again seq (\d+) .*\((\d+\|[\d|]+)\)", text)
    assert [seq for seq, _ in rows] == ["5", "10"]
    around = "|".join(numbers for _, numbers in rows).split("|")
    assert sorted(around) == sorted(re.findall(r" remote-as (\d+)\n", text))


@NEEDS_VTYSH
def test_vtysh_accepts_what_nvue_adds(tmp_path):
    """What NVUE copies into frr.conf as it is; a misspelt word is not taken."""
    target("nvue").render(agreed(SHARED, BGP), tmp_path / "out", only=[0])
    (tree,) = yaml.safe_load((tmp_path / "out" / "0" / "startup.yaml").read_text())
    text, file = tree["set"]["system"]["config"]["snippet"]["frr.conf"], tmp_path / "frr.conf"
    for lines, code in ((text, 0), (text.replace("nexthop-vrf", "nexthop-vrv"), 2)):
        file.write_text(lines)
        judgement = judged(file)
        assert judgement[0] == code, judgement


@pytest.mark.parametrize("name", ["frr", "srlinux"])
def test_nodes_have_their_own_as_numbers(name, tmp_path):
    own = dict(zip(SEVERAL.wiring.names, (7, 65001), strict=False))
    build = replace(SEVERAL, base={"node_asn": own})
    target(name).render(agreed(build, BGP), tmp_path)
    for vertex, number in ((0, "7"), (1, "65001"), (2, "4200000002")):
        folder = tmp_path / SEVERAL.wiring.names[vertex]
        texts = [path.read_text() for path in folder.iterdir() if path.suffix != ".sh"]
        assert any(re.search(rf"(system|bgp|_as|as)\W+{number}\b", text) for text in texts)
        far = SEVERAL.wiring.far[vertex]
        for there in far[far >= 0].tolist():
            other = own.get(SEVERAL.wiring.names[there], 4_200_000_000 + there)
            assert any(re.search(rf"-as\W+{other}\b", text) for text in texts)
    assert not target(name).check_emitted(agreed(build, BGP), tmp_path).differences
    found = target(name).check_emitted(agreed(SEVERAL, BGP), tmp_path)
    told = {(each.says, each.tables) for each in found.examples}
    assert ("AS number 7", "AS number 4200000000") in told
    assert ("AS number 65001", "AS number 4200000001") in told
    assert {says.split()[0] for says, _ in told} == {"AS", "session"}
    sessions = int((SEVERAL.wiring.far[:2] >= 0).sum())
    assert found.differences == 2 + sessions * (2 if SEVERAL.addressing.ipv6 else 1)


@pytest.mark.parametrize(("first", "last"), [(4294967290, 4294967296), (65530, 65536)])
def test_as_numbers_that_are_not_for_use(first, last, tmp_path):
    own = {SEVERAL.wiring.names[3]: 7} if last > 1 << 16 else {}
    build = replace(SEVERAL, base={"asn": first, "node_asn": own})
    with pytest.raises(InputError) as error:
        target("frr").render(agreed(build, BGP), tmp_path / "out")
    assert str(error.value) == (
        f"base.asn: required AS numbers for {7 - len(own)} switches, none above 4294967294, "
        f"and not 23456 or 65535, given {first} to {last}"
    )


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        (
            "eos",
            {"routing": "static", "bfd": "on"},
            "bfd: required false with static routes of eos: they do not follow BFD, given true; "
            "remove it, or write `routes: ebgp`",
        ),
        (
            "linux",
            {"routing": "static", "bfd": "on"},
            "bfd: required false with static routes of linux: they do not follow BFD, given true; "
            "remove it, or choose another system",
        ),
        ("nvue", {"routing": "static", "unnumbered": "on"}, "unnumbered: required false with"),
        ("bird", {"routing": "static", "unnumbered": "off"}, "unnumbered: required true with"),
        ("linux", {"routing": "static", "unnumbered": "off"}, "unnumbered: required true with"),
        ("eos", {"routing": "static", "gtsm": "on"}, "gtsm: required false with static"),
        ("bird", {"routing": "static", "gtsm": "on"}, "gtsm: required false with static"),
        ("frr", {"routing": "static", "gtsm": "on"}, "gtsm: required false with static"),
        (
            "frr",
            {"routing": "static", "gtsm": "on", "bfd": "on", "version": "10.7"},
            "gtsm: required false with static",
        ),
        ("sonic", {"srv6": "host"}, "set srv6: required off with eBGP"),
    ],
)
def test_what_cannot_be_is_refused(name, options, told, tmp_path):
    with pytest.raises(InputError) as error:
        write(name, SEVERAL, tmp_path / "out", BGP | options)
    assert told in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["bird", "linux"])
def test_links_without_addresses_may_be_said_to_have_none(name, tmp_path):
    for unnumbered in ({}, {"unnumbered": "on"}):
        write(
            name, SEVERAL, tmp_path / f"out-{len(unnumbered)}", {"routing": "static"} | unnumbered
        )
    node = SEVERAL.wiring.names[0]
    for file in (tmp_path / "out-0" / node).iterdir():
        assert file.read_text() == (tmp_path / "out-1" / node / file.name).read_text()


def test_frr_has_sessions_beside_static_routes_with_bfd(tmp_path):
    for gtsm, count in (("on", 1), ("off", 0)):
        options = {"routing": "static", "bfd": "on", "gtsm": gtsm}
        write("frr", SEVERAL, tmp_path / gtsm, options)
        text = (tmp_path / gtsm / SEVERAL.wiring.names[0] / "frr.conf").read_text()
        assert text.count("ttl-security hops 1") == count


def test_protection_is_refused(tmp_path):
    with pytest.raises(InputError, match="protect: required none, as target eos with eBGP"):
        target("eos").render(agreed(routed(q=3, protect="link", spread=True), BGP), tmp_path / "x")
