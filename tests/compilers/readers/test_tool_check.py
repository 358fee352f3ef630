"""Files for tools: every node is named with files that are there, and changes are told."""

from __future__ import annotations

import pytest

from tests.compilers.readers.emitted import change, check, fabric, write

FILES = {"ansible": "inventory.yaml", "containerlab": "topology.clab.yml"}
SYSTEM = {"system": "frr"}


@pytest.fixture(params=FILES)
def written(request, tmp_path):
    build = fabric("two hosts")
    write(request.param, build, tmp_path, SYSTEM)
    write("frr", build, tmp_path / "frr")
    return request.param, build, tmp_path


def test_nothing_differs(written):
    tool, build, out = written
    report = check(tool, build, out, SYSTEM)
    assert (report.passed, report.switches, report.examples) == (True, 7, ())


@pytest.mark.parametrize(
    ("old", "new"), [('"3":\n', '"33":\n'), ("frr/3", "frr/4"), ("frr/3", "fr/3")]
)
def test_a_change_is_told_with_its_line(written, old, new):
    tool, build, out = written
    change(out / FILES[tool], old, new, -1)
    if new == "fr/3":
        (out / "fr").mkdir()
    report = check(tool, build, out, SYSTEM)
    assert not report.passed
    assert all(example.file == str(out / FILES[tool]) for example in report.examples)
    assert any(example.line for example in report.examples)


def test_a_file_that_is_gone(written):
    tool, build, out = written
    (out / "frr" / "5" / "frr.conf").unlink()
    (out / "frr" / "6").rename(out / "frr" / "66")
    told = str(check(tool, build, out, SYSTEM).examples)
    assert "frr/6" in told
    assert ("frr/5/frr.conf" in told) is (tool != "ansible")


def test_cables_of_a_lab(tmp_path):
    build = fabric("two hosts")
    write("containerlab", build, tmp_path, SYSTEM)
    change(tmp_path / FILES["containerlab"], '["0:eth1", ', '["2:eth9", ')
    told = str(check("containerlab", build, tmp_path, SYSTEM).examples)
    assert "links of 0 and" in told


NO_YAML = ("a: [", "a: 2024-13-45", "a: !!timestamp x", "a: !!bool x", f"a: {'9' * 5000}")


@pytest.mark.parametrize("text", NO_YAML, ids=range(len(NO_YAML)))
def test_no_yaml(text, written):
    tool, build, out = written
    (out / FILES[tool]).write_text(text)
    (example,) = check(tool, build, out, SYSTEM).examples
    assert "cannot be read" in example.says
