"""The rendered text: golden files, templates of one's own, files whole or not there."""

from dataclasses import replace

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import save
from compilers.targets.openflow.profiles import PROFILES
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.profiled import with_profile
from tests.compilers.routed import routed


def compiled(tmp_path, extra=""):
    path = tmp_path / "fabric.yaml"
    path.write_text(f"name: lab\ntopology: {{family: polarfly, q: 2}}\n{extra}")
    return compile_fabric(load_fabric(path))


@pytest.fixture
def build(tmp_path):
    extra = 'hosts_per_node: 2\naddressing: {ipv6: "fd00::/48"}\n'
    # The identity is a digest of the fabric's files: a fixed one keeps the golden files readable.
    return replace(compiled(tmp_path, extra), identity="0123456789abcdef")


def test_golden(build, tmp_path, golden):
    target("ovs").render(build, tmp_path / "out")
    for file in target("ovs").files:
        golden((tmp_path / "out" / "0" / file).read_text(), f"ovs_q2_{file}")


def test_one_table_has_no_ipv6_without_a_pool(tmp_path):
    build = with_profile(replace(routed(q=2), identity="0" * 16), PROFILES["single-table"])
    target("ovs").render(build, tmp_path / "out")
    text = (tmp_path / "out" / "3" / "flows.txt").read_text()
    assert "ip_dst=10.0.0." in text
    assert "ipv6" not in text


def test_no_ipv6_without_a_pool_and_no_host_rows_without_hosts(tmp_path):
    made = save(compiled(tmp_path, "hosts_per_node: 0\n"), tmp_path / "b")
    target("ovs").render(made, tmp_path / "out")
    text = (tmp_path / "out" / "3" / "flows.txt").read_text()
    assert "ipv6" not in text
    assert "nd_" not in text
    assert "priority=32" not in text
    assert f"cookie=0x5047{made.identity[:12]}" in text


def test_a_folder_that_cannot_be_written_is_named(build, tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(InputError, match="out/0: required a folder that can be written"):
        target("ovs").render(build, tmp_path / "out")
