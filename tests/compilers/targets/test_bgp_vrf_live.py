"""SONiC's files on FRR, with the hosts in a VRF of the kernel: shares whose next hops BGP finds.

Needs a kernel with VRFs. Cables are pulled, a switch dies: all flows arrive again, and after each
repair every member of every share is in the kernel (`live_bgp.SonicRouter`).
"""

import subprocess

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import load, save
from compilers.targets.routed.interfaces import SONIC
from compilers.targets.target_lookup import target
from tests.compilers.targets.test_bgp_live import SPEC, carried_out

VRF = ["unshare", "--net", "ip", "link", "add", "hosts", "type", "vrf", "table", "10"]
pytestmark = pytest.mark.live


@pytest.mark.skipif(
    subprocess.run(VRF, capture_output=True).returncode != 0, reason="the kernel has no VRF"
)
@pytest.mark.parametrize("unnumbered", ["on", "off"])
def test_shares_of_a_vrf_after_failures(unnumbered, tmp_path):
    (tmp_path / "fabric.yaml").write_text(SPEC.format(q=2, balance="compact-valiant"))
    build = SONIC.named(compile_fabric(load_fabric(tmp_path / "fabric.yaml")))
    save(build, tmp_path / "b")
    build = load(tmp_path / "b")
    options = {"routing": "bgp", "bfd": "on", "unnumbered": unnumbered}
    target("sonic").render(build, tmp_path / "out", options=options)
    (a, b), (c, d), *_ = build.topology.graph.edges().tolist()
    events = [["pull", a, b], ["silence", c, d], ["kill", b]]
    carried_out(tmp_path, True, events, tmp_path / "out", name="sonic")
