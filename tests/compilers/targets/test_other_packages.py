"""What a router of another package brings, and mistakes of those who contribute."""

import shutil
from dataclasses import replace

import pytest

from compilers.balances import minimal
from compilers.families.polarfly import PolarFly
from compilers.spec.balances import balance_in
from compilers.targets.nxos.port_names import NXOS
from compilers.targets.routed.p2p_target import P2pTarget
from compilers.targets.routed.p2p_variables import P2pVariables
from compilers.topology.families import build_topology
from inventory.problems import InputError
from templates import TEMPLATES
from tests.compilers.targets.makers import fabric


@pytest.fixture
def heron(tmp_path):
    """A target with a copy of the templates and grammars of another in a folder of its own."""
    shutil.copytree(TEMPLATES / "nxos", tmp_path / "heron")

    class Heron(P2pTarget):
        name = "heron"
        files = dict.fromkeys(("nxos.cfg",), P2pVariables)
        interfaces = NXOS
        templates = tmp_path / "heron"

    return Heron()


def test_a_router_is_read_back_by_the_grammar_beside_its_templates(heron, tmp_path):
    build = fabric(q=2)
    heron.render(build, tmp_path / "out")
    assert heron.check_emitted(build, tmp_path / "out").passed
    grammar = heron.templates / "nxos.cfg.grammar"
    grammar.write_text(grammar.read_text().replace("feature lldp ", "feature lldq "))
    heron.templates = heron.templates.rename(tmp_path / "other")
    assert not heron.check_emitted(build, tmp_path / "out").passed


def test_a_template_that_is_not_there_is_named(heron, tmp_path):
    (heron.templates / "nxos.cfg.j2").unlink()
    with pytest.raises(InputError) as error:
        heron.render(fabric(q=2), tmp_path / "out")
    assert str(error.value) == (
        "target heron: required a template of each file of the target, given no heron/nxos.cfg.j2"
    )


def test_a_balance_with_another_name_than_its_file_is_refused():
    with pytest.raises(InputError) as error:
        balance_in(minimal, "least-hops")
    assert str(error.value) == (
        "balance Minimal: required name = 'least-hops', after the file least_hops.py, "
        "given 'minimal'"
    )


def test_a_family_with_a_wrong_diameter_is_refused(monkeypatch):
    built = PolarFly.build
    monkeypatch.setattr(PolarFly, "build", lambda *given: replace(built(*given), diameter=3))
    with pytest.raises(InputError) as error:
        build_topology("polarfly", {"q": 3})
    assert str(error.value) == (
        "family polarfly: required the diameter of the graph that it builds, 2, given 3"
    )
