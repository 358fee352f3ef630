"""Throughput by the text of what was emitted: alternates are in the files, not only in tables."""

import pytest

from compilers.evaluation.saturation import throughput
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.targets.target_lookup import target

HOSTS = 4


def test_alternates_lift_perm2hop(tmp_path):
    """PolarFly q = 7: minimal routes carry 12.5 %, the compiled tables, which files equal, 32 %."""
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 7}}
    spec["routing"] = {"balance": "compact-valiant", "disjoint": "none"}
    build = compile_fabric(load_fabric(spec))
    target("eos").render(build, tmp_path)
    report = target("eos").check_emitted(build, tmp_path)
    assert (report.differences, report.delivered) == (0, report.pairs)
    found = throughput(build, "perm2hop", HOSTS)
    assert found.minimal.share == pytest.approx(0.125)
    assert found.as_emitted.share == pytest.approx(7 / 22)
