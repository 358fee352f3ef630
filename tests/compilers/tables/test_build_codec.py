"""The codec of builds: arrays as their dataclasses declare them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.array_declarations import Misfit
from compilers.tables.build import Build
from compilers.tables.build_codec import arrays_of, from_json, require_declared, to_json
from compilers.tables.folders.build_folder import load, save
from compilers.topology.families import family_named
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError
from tests.compilers.fabrics import polarfly_build
from tests.compilers.signed import sign

EXAMPLES = Path(__file__).parents[3] / "examples"


@dataclass(frozen=True, slots=True, eq=False)
class MeteredWiring(Wiring):
    """Wiring with one more array."""

    metres: Annotated[NDArray[np.float32], "S K"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MeteredBuild(Build):
    """A build with it."""

    wiring: MeteredWiring


def wrong(array: str, given: np.ndarray, folder: Path) -> str:
    save(polarfly_build(3), folder)
    np.save(folder / "arrays" / f"{array}.npy", given)
    sign(folder)
    with pytest.raises(InputError) as caught:
        load(folder)
    return str(caught.value)


def test_an_array_is_declared_once() -> None:
    build = polarfly_build(3)
    names = {name: getattr(build.wiring, name) for name in Wiring.__dataclass_fields__}
    metres = np.ones(build.wiring.far.shape, np.float32)
    more = MeteredBuild(
        **{name: getattr(build, name) for name in Build.__dataclass_fields__ if name != "wiring"},
        wiring=MeteredWiring(**names, metres=metres),
    )
    found = {field.name: array for field, array in arrays_of(more)}
    assert found.keys() - {field.name for field, _ in arrays_of(build)} == {"metres"}
    assert found["metres"] is metres
    require_declared(more)
    short = replace(more, wiring=replace(more.wiring, metres=metres[:5]))
    with pytest.raises(Misfit, match=r"metres is float32\[5, 4\], not float32\[S, K\]"):
        require_declared(short)


Scalar = TypeVar("Scalar", bound=np.generic)
AliasOfNumpy25 = TypeAliasType(
    "AliasOfNumpy25", np.ndarray[Any, np.dtype[Scalar]], type_params=(Scalar,)
)


@dataclass(frozen=True, slots=True)
class Alike:
    """The same declarations, in every form that numpy has given its annotation."""

    now: Annotated[NDArray[np.int16], "S"]
    plain: Annotated[np.ndarray[Any, np.dtype[np.int16]], "S"]
    alias: Annotated[AliasOfNumpy25[np.int16], "S"]
    either: Annotated[AliasOfNumpy25[np.uint8] | AliasOfNumpy25[np.uint16], "S"]


def test_an_array_is_declared_with_any_numpy() -> None:
    found = arrays_of(Alike(*[np.zeros(3)] * 4))
    types = {field.name: field.scalar_types for field, _ in found}
    assert types.pop("either") == ("uint8", "uint16")
    assert types == dict.fromkeys(["now", "plain", "alias"], ("int16",))


def test_arrays_that_are_not_as_declared(tmp_path: Path) -> None:
    far = np.array(polarfly_build(3).wiring.far)
    assert "far is int64[13, 4], not int32[S, K]" in wrong("far", far.astype(np.int64), tmp_path)
    assert "far is int32[13], not int32[S, K]" in wrong("far", far[:, 0], tmp_path)
    assert "far is int32[13, 3], not int32[S, K]" in wrong("far", far[:, :3], tmp_path)
    assert "far has values outside -1..S" in wrong("far", far + 13, tmp_path)
    egress = np.zeros((13, 13), np.uint32)
    assert "is uint32[13, 13], not uint8 or uint16[S, R]" in wrong("route_egress", egress, tmp_path)
    rows = np.ones((13, 4, 2), np.uint16)
    assert "is uint16[13, 4, 2], not uint16[S, C, A+1]" in wrong("class_weight", rows, tmp_path)


@pytest.mark.parametrize("name", ["q7", "polarstar-q5"])
def test_builds_with_hardware_come_back_as_they_were(tmp_path: Path, name: str) -> None:
    build = compile_fabric(load_fabric(EXAMPLES / name / "fabric.yaml"))
    again = save(build, tmp_path / "b")
    pairs = zip(arrays_of(build), arrays_of(again), strict=True)
    assert all((one == other).all() for (_, one), (_, other) in pairs)
    assert build.hardware is not None
    assert again.hardware is not None
    assert again.hardware.types == build.hardware.types
    assert again.hardware.guid == build.hardware.guid
    assert again.addressing.ipv6 == build.addressing.ipv6
    assert save(again, tmp_path / "c").identity == again.identity


def test_a_gateway_has_a_mac_address_of_48_bits() -> None:
    build = polarfly_build(3)
    require_declared(build)
    addressing = replace(build.addressing, gateway_mac=1 << 48)
    with pytest.raises(Misfit, match="gateway_mac is 281474976710656"):
        require_declared(replace(build, addressing=addressing))


@pytest.mark.parametrize("hierarchy", [0, -1, 14, 10**30])
def test_a_supernode_has_from_one_vertex_to_all(hierarchy: int) -> None:
    """A packed build with 0 or 10**30 was answered with an internal error."""
    build = polarfly_build(3)
    topology = replace(build.topology, hierarchy=hierarchy)
    with pytest.raises(Misfit, match=r"topology: hierarchy is .*, not 1 to S"):
        require_declared(replace(build, topology=topology))


@pytest.mark.parametrize("length", [-1, 0, 33, 37])
def test_a_block_of_ipv4_has_a_length_of_1_to_32(length: int) -> None:
    """A packed build with 37 was answered with an internal error."""
    build = polarfly_build(3)
    addressing = replace(build.addressing, ipv4_length=length)
    with pytest.raises(Misfit, match=f"ipv4_length is {length}"):
        require_declared(replace(build, addressing=addressing))


@pytest.mark.parametrize("family", ["slimfly", "bundlefly", "dragonfly", "fat-tree"])
@pytest.mark.parametrize("number", [10**400, 2**127 - 1, 10**6])
def test_a_graph_has_no_parameter_that_takes_for_ever(family: str, number: int) -> None:
    """A packed build with one was an internal error, or left a thread that ran for ever."""
    build, member_of = polarfly_build(3), family_named(family)
    assert member_of is not None
    parameters = dict.fromkeys(member_of.parameters, number)
    topology = replace(build.topology, family=family, parameters=parameters)
    with pytest.raises(Misfit, match=f"no member of {family}"):
        require_declared(replace(build, topology=topology))


@pytest.mark.parametrize(
    "text",
    ["x\n2026-11-30T00:00:00Z link 0-1 is dead", "\x1b[2J", "x" * 2000],
    ids=["newline", "escape", "long"],
)
@pytest.mark.parametrize("place", ["name", "topology", "node_types", "systems"])
def test_texts_of_a_build_forge_no_line(text: str, place: str) -> None:
    """A packed build, even a verified one, could bring such names of ports and types."""
    build = polarfly_build(3)
    fabric = json.loads(to_json(build))
    arrays = {declared.name: array for declared, array in arrays_of(build)}
    assert from_json(fabric, arrays, inputs={}, identity="").name == build.name
    if place == "name":
        fabric["name"] = text
    elif place == "topology":
        fabric["topology"]["parameters"][text] = 3
    elif place == "node_types":
        fabric["node_types"]["ports"][0][0] = text
    else:
        fabric["systems"] = [text] * 13
    with pytest.raises(Misfit, match=f"{place} has a text that is not printable or too long"):
        from_json(fabric, arrays, inputs={}, identity="")


@pytest.mark.parametrize(("levels", "taken"), [(50, True), (200, False), (970, False)])
def test_a_value_is_not_nested_so_deeply_that_the_next_reader_gives_up(
    levels: int, taken: bool
) -> None:
    """A build with 978 was applied, and then no controller could start with it."""
    build = polarfly_build(3)
    arrays = {declared.name: array for declared, array in arrays_of(build)}
    deep: Any = "line\nof the user's"
    for _ in range(levels):
        deep = {"a": deep}
    fabric = json.loads(to_json(build)) | {"vars": deep}
    if taken:
        assert from_json(fabric, arrays, inputs={}, identity="").vars == deep
        return
    with pytest.raises(Misfit, match="vars has more than 100 levels of nesting"):
        from_json(fabric, arrays, inputs={}, identity="")
