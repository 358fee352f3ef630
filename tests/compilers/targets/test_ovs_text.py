"""The rendered text: golden files, templates of one's own, files whole or not there."""

from dataclasses import replace

import numpy as np
import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import save
from compilers.tables.intermediate_form import Classes
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


def test_every_node_gets_both_files_and_nothing_else(build, tmp_path):
    seen = []
    target("ovs").render(
        build, tmp_path / "out", progress=lambda done, total: seen.append((done, total))
    )
    files = {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.*")}
    assert files == {f"{v}/{file}" for v in range(7) for file in target("ovs").files}
    assert seen == [(n, 7) for n in range(1, 8)]


def test_same_build_same_bytes(build, tmp_path):
    for out in ("a", "b"):
        target("ovs").render(build, tmp_path / out)
    for file in (tmp_path / "a").rglob("*.txt"):
        assert file.read_bytes() == (tmp_path / "b" / file.relative_to(tmp_path / "a")).read_bytes()


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


def test_templates_of_ones_own_stand_in_for_ours(build, tmp_path):
    own = tmp_path / "own"
    (own / "ovs").mkdir(parents=True)
    (own / "ovs" / "groups.txt.j2").write_text("{{ node }} {{ groups | length }}\n")
    target("ovs").render(build, tmp_path / "out", templates=own)
    assert (tmp_path / "out" / "1" / "groups.txt").read_text() == "1 3\n"
    assert "write_metadata" in (tmp_path / "out" / "1" / "flows.txt").read_text()


def test_a_folder_that_cannot_be_written_is_named(build, tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(InputError, match="out/0: required a folder that can be written"):
        target("ovs").render(build, tmp_path / "out")


def test_limits_are_told_in_the_name_of_this_target(build, tmp_path):
    classes = Classes.minimal(np.ones((7, 1025), np.int32))
    wide = replace(build, tables=replace(build.tables, classes=classes))
    with pytest.raises(
        InputError, match="at most 1024 groups per switch for target ovs, given 1025"
    ):
        target("ovs").render(wide, tmp_path / "out")
