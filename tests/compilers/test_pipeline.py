"""The steps of a compile: the mistakes of each are said at once, and its values are whole."""

from dataclasses import fields

import pytest

from compilers.pipeline import (
    InstalledFabric,
    RoutedFabric,
    compile_fabric,
    install,
    route,
    with_cables,
)
from compilers.spec.fabric_file import load_fabric
from compilers.wiring.placed_fabric import place_fabric
from inventory.problems import InputError

HARDWARE = {
    "node_types": {"leaf": {"ports": [{"count": 8}]}},
    "nodes": [{"name": f"n{v}", "type": "leaf"} for v in range(7)],
    "shared_risks": [{"name": "feed", "fails": ["n0", "n77"]}],
}


def test_policy_and_risks_are_refused_at_once() -> None:
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 2}, "inventory": HARDWARE}
    fabric = load_fabric(spec | {"routing": {"protect": "module"}})
    with pytest.raises(InputError) as caught:
        compile_fabric(fabric)
    assert [problem.key for problem in caught.value.problems] == [
        "routing.protect",
        "shared_risks[0].fails[1]",
    ]


def test_a_step_returns_a_value_without_gaps() -> None:
    """What may be None is None because the spec does not have it."""
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 2}}
    placed = place_fabric(load_fabric(spec))
    installed = install(placed)
    missing = [f.name for f in fields(InstalledFabric) if getattr(installed, f.name) is None]
    assert missing == ["hardware", "module"]
    routed = route(installed)
    assert not [f.name for f in fields(RoutedFabric) if getattr(routed, f.name) is None]
    assert with_cables(placed).wiring is placed.wiring
