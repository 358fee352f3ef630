"""What the engines with an inner process say before it starts."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from mininet_scenarios.engines.inner_engine import RoutedEngine
from polarfab.fabric import Fabric


class Said(Exception):
    """Ends an engine at its first step."""


@pytest.mark.parametrize(
    ("routes", "more"), [("static", ""), ("ebgp", ", with static routes in place of eBGP")]
)
def test_it_is_said_that_no_ebgp_is_emulated(tmp_path, routes, more):
    """Static routes stood for the sessions of the spec without a word."""
    spec = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 2},
        "control_plane": {"routes": routes},
    }
    build = replace(Fabric.from_spec(spec).build, identity="0123456789abcdef")

    def step(_name, words):
        raise Said(words)

    engine = RoutedEngine(SimpleNamespace(build=build, hosts=3, work=tmp_path), "frr")
    with pytest.raises(Said) as said:
        engine.start(step)
    assert str(said.value) == f"render 7 configurations for frr{more}"
