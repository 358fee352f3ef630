"""What packages add to systems: the class of a system stays, and clashes are refused."""

from importlib.metadata import EntryPoint

import pytest

from compilers.entry_points import ADDITIONS, TARGETS, shipped
from compilers.spec.target_names import BUILT_IN
from compilers.targets import addition
from compilers.targets.target_lookup import target
from inventory.problems import InputError


def test_no_extension_takes_the_place_of_a_class_of_the_core():
    assert not shipped(TARGETS).keys() & BUILT_IN.keys()
    for name, module in BUILT_IN.items():
        assert type(target(name)).__module__ == f"compilers.targets.{module}"


def test_additions_are_to_systems_of_the_core():
    assert {name.partition(".")[0] for name in shipped(ADDITIONS)} <= BUILT_IN.keys()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("extensions.lossless.sonic_lossless:SonicLossless", "has an option lossless already"),
        ("extensions.lossless.sonic_lossless:SonicQos", "is no subclass of polarfab.Addition"),
        ("extensions.lossless.nowhere:Nothing", "addition sonic.more: required an addition"),
    ],
)
def test_a_broken_addition(value, message, monkeypatch):
    points = {**shipped(ADDITIONS), "sonic.more": value}
    entries = {name: (EntryPoint(name, of, ADDITIONS),) for name, of in points.items()}
    monkeypatch.setattr(addition, "registered", lambda _: entries)
    with pytest.raises(InputError) as error:
        addition.additions.__wrapped__("sonic")
    assert message in str(error.value)
