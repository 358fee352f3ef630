"""SONiC's platform files. The ports of each mode are those that its portconfig.py gave for it."""

import json

import pytest

from inventory.inventory_file import load_inventory
from inventory.problems import InputError
from inventory.sonic_platform import Cage, PlatformEntry, platform_ports, port_groups

EIGHT = tuple(map(str, range(40, 48)))
NAMES = tuple("abcdefgh")


def ports(modes, cage, lanes=EIGHT):
    """Name, lanes and alias of each part of the cage Ethernet8."""
    aliases = (NAMES,) * len(modes)
    entry = PlatformEntry(name="Ethernet8", lanes=lanes, modes=tuple(modes), aliases=aliases)
    return [(port.name, port.lanes, port.alias) for port in platform_ports([entry], [cage])]


@pytest.mark.parametrize(
    ("mode", "lanes", "groups"),
    [
        ("1x100G[40G]", 4, [(1, 100_000, {100_000, 40_000}, 4)]),
        ("2x200G[100G,40G]", 8, [(2, 200_000, {200_000, 100_000, 40_000}, 4)]),
        ("1x100G(4)", 8, [(1, 100_000, {100_000}, 4)]),
        ("4x25G(4)[10G,1G]", 8, [(4, 25_000, {25_000, 10_000, 1000}, 1)]),
        ("8x50G[25G][10G]", 8, [(8, 50_000, {50_000, 25_000, 10_000}, 1)]),
        ("2x400G[200G, 100G]", 8, [(2, 400_000, {400_000, 200_000, 100_000}, 4)]),
        ("4x100G[50G, 25G](4)", 8, [(4, 100_000, {100_000, 50_000, 25_000}, 2)]),
        ("1x1000[100,10]", 1, [(1, 1000, {1000, 100, 10}, 1)]),
        ("3x10G(3)+1x1G(1)", 4, [(3, 10_000, {10_000}, 1), (1, 1000, {1000}, 1)]),
        (
            "1x200G[100G](4)+4x50G[25G](4)",
            8,
            [(1, 200_000, {200_000, 100_000}, 4), (4, 50_000, {50_000, 25_000}, 1)],
        ),
        *((mode, 4, []) for mode in ("1x100G(8)", "8x10G", "0x10G", "auto", "1x100G+", "")),
    ],
)
def test_a_mode_is_read_as_sonic_reads_it(mode, lanes, groups):
    read = [(g.ports, g.speed, g.speeds, g.lanes) for g in port_groups(mode, lanes)]
    assert read == groups


@pytest.mark.parametrize(
    ("modes", "cage", "expected"),
    [
        (["2x200G"], Cage(2, 200, 4), [("Ethernet8", 0, 4, "a"), ("Ethernet12", 4, 8, "b")]),
        # Lanes choose the mode; without them it is that of the whole cage.
        (["1x400G[100G]", "1x100G(4)"], Cage(1, 100, 4), [("Ethernet8", 0, 4, "a")]),
        (["1x400G[100G]", "1x100G(4)"], Cage(1, 100, 8), [("Ethernet8", 0, 8, "a")]),
        (["1x100G(4)", "1x100G(2)"], Cage(1, 100, 2), [("Ethernet8", 0, 2, "a")]),
        (["1x100G(4)", "1x100G"], Cage(1, 100, 0), [("Ethernet8", 0, 8, "a")]),
        # A mode's own speed comes before one that the port must be told.
        (["1x400G[100G]", "1x100G(4)"], Cage(1, 100, 0), [("Ethernet8", 0, 4, "a")]),
        (
            ["1x400G(4)+2x200G(4)"],
            Cage(3, 0, 0),
            [("Ethernet8", 0, 4, "a"), ("Ethernet12", 4, 6, "b"), ("Ethernet14", 6, 8, "c")],
        ),
    ],
)
def test_a_cage_has_the_ports_of_its_mode(modes, cage, expected):
    assert ports(modes, cage) == [
        (name, ",".join(EIGHT[first:end]), alias) for name, first, end, alias in expected
    ]


@pytest.mark.parametrize(
    ("cage", "required", "given"),
    [
        (Cage(1, 40, 0), "a cage with a mode 1x40G", "Ethernet8 with 1x100G(4), 1x100G(2)"),
        (Cage(1, 100, 8), "ports of 8 lanes", "Ethernet8, which has 4"),
        (
            Cage(1, 100, 0),
            "`speed` and `lanes` of the node type that choose one mode of a cage",
            "Ethernet8 with 1x100G(4), 1x100G(2)",
        ),
    ],
)
def test_a_cage_without_one_mode_is_refused(cage, required, given):
    with pytest.raises(ValueError, match="Ethernet8") as error:
        ports(["1x100G(4)", "1x100G(2)"], cage)
    assert error.value.args == (required, given)


def loaded(folder, name, text):
    """The ports of a node type with two cages of 100 Gb/s and the platform's file."""
    (folder / name).write_text(text, encoding="utf-8")
    (folder / "inventory.yaml").write_text(
        f"node_types:\n  box:\n    platform: {name}\n    ports: [{{count: 2, speed: 100}}]\n"
        "generate: {type: box}\n"
    )
    inventory, _ = load_inventory(folder / "inventory.yaml")
    return [(p.name, p.lanes, p.alias) for p in inventory.node_types["box"].platform_ports()]


def platform(**entry):
    """A platform.json of two cages; entry: other values of the first."""
    cage = {"index": "1,1", "lanes": "0,1", "breakout_modes": {"1x100G": ["etp1"]}}
    other = {"index": "2,2", "lanes": "2,3", "breakout_modes": {"1x100G": ["etp2"]}}
    return json.dumps({"interfaces": {"Ethernet2": other, "Ethernet0": cage | entry}})


@pytest.mark.parametrize("entry", [{}, {"lanes": "0,1,"}, {"breakout_modes": {"1x100G": "etp1"}}])
def test_platform_json_with_its_oddities(entry, tmp_path):
    """A comma behind the last lane (sn5640), an alias that is no list (s5248f)."""
    read = loaded(tmp_path, "platform.json", platform(**entry))
    assert read == [("Ethernet0", "0,1", "etp1"), ("Ethernet2", "2,3", "etp2")]


INI = """\
# role and speed may be missing
# name          lanes   speed   alias  role
Ethernet4       4,5     100000  b      Ext
Ethernet0       0,1,    100000  a
Ethernet-BP0    8,9     100000  c      Int
Ethernet-Rec0   10      10000   d      Rec
Ethernet8       12,13   100000  e      Inb
"""


def test_port_config_ini_has_its_own_columns_and_internal_ports(tmp_path):
    read = loaded(tmp_path, "port_config.ini", INI)
    assert read == [("Ethernet0", "0,1", "a"), ("Ethernet4", "4,5", "b")]
    with pytest.raises(InputError, match="an entry for cage 2, given 1 entries"):
        loaded(tmp_path, "port_config.ini", "Ethernet0 0,1 a\n")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("platform.json", platform(lanes="0,one"), "required lanes at Ethernet0, numbers with"),
        ("platform.json", platform(lanes=None), "required lanes at Ethernet0, numbers with"),
        ("platform.json", platform(breakout_modes=[]), "required breakout_modes at Ethernet0"),
        ("platform.json", '{"interfaces": {}}', "required a file that lists ports of the face"),
        ("platform.json", '{"chassis": {}}', "required SONiC's platform.json or port_config.ini"),
        ("platform.json", "[" * 100_000, "required SONiC's platform.json or port_config.ini"),
        (
            "hwsku.json",
            '{"interfaces": {"Ethernet0": {"default_brkout_mode": "1x100G"}}}',
            "required platform.json, which has the lanes, rather than hwsku.json",
        ),
        ("ports.ini", "Eth1 0,1 a", "required ports named Ethernet and a number, not Eth1"),
        ("ports.ini", "Ethernet-Rec0 1 a Rec\n", "required a file that lists ports of the face"),
    ],
)
def test_what_is_no_list_of_ports_is_refused_with_its_entry(name, text, message, tmp_path):
    with pytest.raises(InputError) as error:
        loaded(tmp_path, name, text)
    assert f"inventory.yaml:3: node_types.box.platform: {message}" in str(error.value)
