"""Options of targets: every mistake by name, at once; defaults where nothing is given."""

from importlib.metadata import EntryPoint

import pytest

from compilers.entry_points import TARGETS, load
from compilers.spec.target_names import SHIPPED
from compilers.targets import options
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.routed import routed

VERSIONS = {
    "version": options.Option.choice("Which.", "8.4", "10.7"),
    "hops": options.Option.choice("How.", "few", "many"),
}


def test_what_is_not_given_has_its_default():
    chosen = options.choose("frr", VERSIONS, options.read(["version=10.7"]))
    assert chosen == {"version": "10.7", "hops": "few"}
    assert options.choose("frr", VERSIONS, None) == {"version": "8.4", "hops": "few"}


def test_a_value_may_hold_the_sign():
    assert options.read(["share=a=b", "empty="]) == {"share": "a=b", "empty": ""}


def test_every_mistake_at_once():
    with pytest.raises(InputError) as error:
        options.choose("frr", VERSIONS, {"verson": "8.4", "hops": "no", "routing": "bgp", "x": "1"})
    assert str(error.value).splitlines() == [
        "set: required an option of target frr: version, hops, given verson; did you mean version?",
        "set hops: required few or many, given no",
        "set: required an option of target frr: version, hops, given routing; "
        "write it in fabric.yaml: control_plane.routes",
        "set: required an option of target frr: version, hops, given x",
    ]


def test_words_that_are_none():
    with pytest.raises(InputError) as error:
        options.read(["version", "=1", "a=1", "a=2"])
    assert str(error.value).splitlines() == [
        "set: required NAME=VALUE, given version",
        "set: required NAME=VALUE, given '=1'",
        "set a: required one value, given two or more",
    ]
    with pytest.raises(InputError, match=r"^--napalm: required NAME=VALUE, given port"):
        options.read(["port"], "--napalm")


def test_a_target_refuses_what_it_has_not(tmp_path):
    with pytest.raises(InputError, match=r"an option of target eos: .*given colour"):
        target("eos").render(routed(q=2), tmp_path / "out", options={"colour": "red"})
    assert not (tmp_path / "out").exists()


def test_the_default_of_every_option_is_one_of_its_values():
    for name in SHIPPED:
        for options_of in (target(name).all_options, target(name).agreements):
            assert all(option.is_possible(option.default) for option in options_of.values())


def test_a_package_that_cannot_be_imported_is_one_message():
    with pytest.raises(InputError, match="a target that can be imported, given ModuleNotFound"):
        load(EntryPoint("gone", "nowhere_to_be_found:Gone", TARGETS))
