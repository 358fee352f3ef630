"""Every target takes every kind of fabric: a part of one, spines without hosts, aggregates."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.spec.target_names import SHIPPED
from compilers.targets.target_lookup import target
from extensions.lossless.layers import deadlock_free_layers
from tests.compilers.fabrics import partly_installed
from tests.compilers.routed import with_words

TEXT = "name: lab\ntopology: {topology}\nhosts_per_node: 2\naddressing: {{ipv6: 'fd00::/48'}}\n"
FABRICS = {
    "part": "{family: polarfly, q: 3}",
    "spines": "{family: oft, q: 2}",
    "aggregates": "{family: polarstar, supernode: complete, q: 2, degree: 2}",
}
CASES = [(name, {}) for name in SHIPPED if name != "opensm"]
CASES += [
    ("opensm", {"guids": "made-up"}),
    ("sonic", {"srv6": "host"}),
    ("sonic", {"srv6": "switch"}),
    ("srv6", {"decap": "switch"}),
    ("frr", {"routing": "bgp", "bfd": "on"}),
    ("frr", {"version": "10.7"}),
]
WHOLE = {"ansible", "containerlab", "opensm"}


@cache
def built(folder, kind):
    (folder / "fabric.yaml").write_text(TEXT.format(topology=FABRICS[kind]))
    loaded = load_fabric(folder / "fabric.yaml")
    build = partly_installed(loaded, {1}) if kind == "part" else compile_fabric(loaded)
    return replace(build, identity="0123456789abcdef")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fabrics")


@pytest.mark.parametrize(
    ("name", "options", "kind"),
    [
        *((*case, "part") for case in CASES),
        *((name, {}, "spines") for name in ("eos", "linux", "ovs", "srlinux")),
        *((name, {}, "aggregates") for name in ("frr", "junos", "nvue", "sonic")),
    ],
)
def test_every_switch_that_is_there_has_its_files(folder, tmp_path, name, options, kind):
    build = built(folder, kind)
    files = target(name).files
    of_switch = next(iter(files.values()))
    wanted = [file for file, kind in files.items() if kind is of_switch]
    there = {n for n, p in zip(build.wiring.names, build.topology.present, strict=True) if p}
    folders = {"."} if name in WHOLE else there
    build, words = with_words(build, options)
    target(name).render(build, tmp_path, options=words)
    found = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert {str(path.parent) for path in found if path.parts[0] != "hosts"} == folders
    assert all((tmp_path / one / file).stat().st_size for one in folders for file in wanted)


def test_layers_of_a_part_are_those_of_its_own_pairs(folder):
    build = built(folder, "part")
    found = deadlock_free_layers(build)
    ends = np.flatnonzero(build.topology.endpoints)
    elsewhere = np.ones_like(found.layer, bool)
    elsewhere[np.ix_(ends, ends)] = False
    assert 1 <= found.count <= 2
    assert not found.layer[elsewhere].any()
