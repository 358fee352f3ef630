"""Throughput by the text of what was emitted: alternates are in the files, not only in tables."""

import pytest

from compilers.evaluation.saturation import throughput
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.targets.target_lookup import target

HOSTS = 4


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """PolarFly q = 7 with Compact Valiant."""
    file = tmp_path_factory.mktemp("q7") / "fabric.yaml"
    file.write_text(
        "name: lab\ntopology: {family: polarfly, q: 7}\n"
        "routing: {balance: compact-valiant, disjoint: none}\n"
    )
    return compile_fabric(load_fabric(file))


@pytest.mark.parametrize("name", ["eos", "nxos", "sonic", "junos"])
def test_alternates_lift_perm2hop(name, build, tmp_path):
    """Minimal routes carry 12.5 % of it, the tables as compiled, which the files equal, 32 %."""
    target(name).render(build, tmp_path)
    report = target(name).check_emitted(build, tmp_path)
    assert (report.differences, report.delivered) == (0, report.pairs)
    found = throughput(build, "perm2hop", HOSTS)
    assert found.minimal.share == pytest.approx(0.125)
    assert found.as_emitted.share == pytest.approx(7 / 22)
