"""Target nvue: what its reader finds wrong; cages, and management."""

from dataclasses import replace

import yaml

from compilers.targets.target_lookup import target
from tests.compilers.readers.emitted import assert_each_is_told
from tests.compilers.targets.makers import compiled as managed
from tests.compilers.targets.makers import fabric
from tests.compilers.targets.test_port_names import compiled as with_cages


def written(build, out):
    target("nvue").render(build, out)
    return target("nvue").check_emitted(build, out)


CHANGES = [
    ('"100.64.0.3":', '"100.64.0.5":'),
    ("type: ipv4-address", "type: interface"),
    ('"10.0.0.8/30"', '"10.0.0.4/30"'),
    ('"100.64.0.2/31": {}', '"100.64.0.8/31": {}'),
    ("blackhole:", '"10.9.9.9":'),
    ('"254"', '"1"'),
    ("type: swp\n", "type: bond\n"),
    ("        ip:\n", "        ip:\n          vrf: red\n"),
    ("      default:\n", "      red: {}\n      default:\n"),
    ("      swp2:\n", "      swp1:\n"),
    ("- set:", "- unset:"),
    ("- set:", "- set: ["),
]


def test_a_changed_text_is_found(tmp_path):
    build = fabric(q=2)
    assert written(build, tmp_path).passed
    assert_each_is_told("nvue", build, tmp_path, "startup.yaml", CHANGES)


def test_routes_may_stand_in_several_lines(tmp_path):
    build = fabric(q=2)
    assert written(build, tmp_path).passed
    file = tmp_path / "0" / "startup.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text())))
    assert target("nvue").check_emitted(build, tmp_path).passed


def test_cages_mtu_and_fec(tmp_path):
    assert written(with_cages(tmp_path), tmp_path / "out").passed
    (tree,) = yaml.safe_load((tmp_path / "out" / "leaf0" / "startup.yaml").read_text())
    ports = tree["set"]["interface"]
    assert ports["swp1"]["link"] == {"breakout": {"2x": {}}}
    assert ports["swp1s1"]["link"] == {"mtu": 9000, "speed": "200G", "fec": "rs"}


def test_management_is_in_a_vrf_of_its_own(tmp_path):
    build = managed(tmp_path)
    named = build.hardware.types[0]
    blocks = tuple(replace(b, names={**b.names, "nvue": "swp{port}"}) for b in named.blocks)
    types = (replace(named, blocks=blocks),)
    build = replace(build, hardware=replace(build.hardware, types=types))
    assert written(build, tmp_path / "out").passed
    (tree,) = yaml.safe_load((tmp_path / "out" / "n0" / "startup.yaml").read_text())
    said = tree["set"]
    assert said["interface"]["eth0"]["ip"] == {"vrf": "mgmt", "address": {"192.0.2.1/24": {}}}
    assert said["service"]["ntp"] == {"mgmt": {"server": {"192.0.2.250": {}}}}
    assert list(said["vrf"]["mgmt"]["router"]["static"]) == ["0.0.0.0/0"]
