"""Arista's AVD validates avd.json, and the lines that it prints from it are those of eos.cfg.

All in one module, as a process takes seconds to import AVD.
"""

import json

import pytest

from compilers.targets.target_lookup import target
from tests.compilers.readers.test_bgp_reader import shared_at_every_hop
from tests.compilers.routed import agreed
from tests.compilers.targets.makers import avd_sections, compiled, fabric
from tests.compilers.targets.test_base_config import WANTED
from tests.compilers.targets.test_stages import sprayed

BGP = {"routing": "bgp"}
CASES = {
    "one host": (lambda: fabric(q=3), (0,)),
    "three hosts": (lambda: fabric(q=2, hosts=3), (5,)),
    "packets that enter": (lambda: fabric(q=2, hosts=2, spread=True), (3,)),
    "eBGP": (lambda: agreed(fabric(q=3, spread=True), BGP), (5,)),
    "eBGP at every hop": (lambda: agreed(shared_at_every_hop(), BGP), (0,)),
    "marks": (lambda: sprayed("polarfly"), (4,)),
}


def printed_and_ours(pyavd, folder):
    """What AVD prints of a switch, and what we do."""
    config = json.loads((folder / "avd.json").read_text())
    result = pyavd.validate_structured_config(config).validation_result
    assert not result.violations, folder.name
    assert not result.deprecations, folder.name
    return pyavd.get_device_config(config), (folder / "eos.cfg").read_text()


@pytest.mark.parametrize("case", CASES)
def test_it_prints_the_same(case, tmp_path, pyavd):
    build, switches = CASES[case][0](), CASES[case][1]
    target("eos").render(build, tmp_path, only=switches)
    folders = [*tmp_path.iterdir()]
    assert len(folders) == len(switches)
    for folder in folders:
        printed, ours = map(avd_sections, printed_and_ours(pyavd, folder))
        assert printed == ours


def test_it_prints_management_time_and_logs(tmp_path, pyavd):
    target("eos").render(compiled(tmp_path), tmp_path / "out", only=[0])
    printed, ours = printed_and_ours(pyavd, tmp_path / "out" / "n0")
    for line in WANTED["eos"].splitlines():
        assert line in printed
        assert line in ours
