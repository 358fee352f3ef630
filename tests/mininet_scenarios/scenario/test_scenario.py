"""Scenario files: what they mean, and what is said about mistakes in them."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from compilers.pipeline import compile_fabric
from compilers.tables.folders.build_folder import save
from inventory.problems import InputError
from mininet_scenarios.scenario.scenario_file import Scenario, load_scenario, schema, shipped
from mininet_scenarios.scenario.timeline_events import cases

FABRIC = "fabric: {name: lab, topology: {family: polarfly, q: 3}}\n"


def load(tmp_path, text):
    file = tmp_path / "scenario.yaml"
    file.write_text(text)
    return load_scenario(str(file))


def test_the_shipped_scenarios_load_under_their_names():
    assert {"first-light-q3", "link-failures-q7", "miswire-q3", "tornado-q5"} <= set(shipped())
    for name in shipped():
        loaded = load_scenario(name)
        assert loaded.scenario.name == loaded.fabric.spec.name == name
        assert loaded.scenario.prove_checker


def test_schema_file_is_the_models(pytestconfig):
    """docs/schema is what an editor is pointed at; --update-golden writes it."""
    file = Path(__file__).parents[3] / "docs" / "schema" / "scenario.json"
    now = json.dumps(schema(), indent=2) + "\n"
    if pytestconfig.getoption("--update-golden"):
        file.write_text(now)
    assert file.read_text() == now


def test_the_schema_takes_every_shipped_scenario():
    """By another reader than ours; `$ref`s and all."""
    check = Draft202012Validator(schema())
    for path in shipped().values():
        document = yaml.safe_load(path.read_text())
        assert not list(check.iter_errors(document)), path
    wrong = yaml.safe_load(f"name: x\n{FABRIC}timeline: [{{node_dwn: 4}}]\n")
    assert list(check.iter_errors(wrong))


def test_a_plain_fabric_is_a_scenario_with_the_defaults(tmp_path):
    text = "name: lab\ntopology: {family: polarfly, q: 3}\nhosts_per_node: 2\n"
    loaded = load(tmp_path, text)
    assert loaded.scenario == Scenario(name="lab")
    assert loaded.folder is None
    assert loaded.fabric.spec.topology.q == 3
    assert loaded.fabric.spec.hosts_per_node == 2


def test_the_inventory_of_a_plain_fabric_is_beside_it(tmp_path):
    with pytest.raises(InputError, match=r"scenario\.yaml:3: inventory: .*no such file"):
        load(tmp_path, "name: lab\ntopology: {family: polarfly, q: 3}\ninventory: none.yaml\n")


def test_a_fabric_file_is_found_beside_the_scenario(tmp_path):
    (tmp_path / "fabric.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 2}\n")
    assert load(tmp_path, "name: x\nfabric: fabric.yaml\n").fabric.spec.topology.q == 2


def test_a_build_folder_is_a_scenario_and_can_be_named_in_one(tmp_path, compiled):
    save(compiled(2), tmp_path / "build")
    assert load_scenario(str(tmp_path / "build")).scenario.name == "lab"
    loaded = load(tmp_path, "name: x\nfabric: build\nengine: model\n")
    assert loaded.folder == tmp_path / "build"
    assert loaded.scenario.engine == "model"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"name: x\nengin: model\n{FABRIC}", "scenario.yaml:2: engin: .*did you mean engine"),
        ("name: x\n", "scenario.yaml:1: fabric: .*add `fabric"),
        (
            "name: x\nfabric:\n  name: lab\n  topology: {family: polarfly, q: 6}\n",
            "scenario.yaml:4: topology.q: required .*prime power.*given 6",
        ),
        (
            f"name: x\n{FABRIC}hosts: 2000\n",
            "scenario.yaml:3: hosts: required at most 1,?024, given 2,?000",
        ),
        (
            "name: x\nfabric: nowhere.yaml\n",
            "scenario.yaml:2: fabric: required a file.*, given nowhere.yaml, no such file",
        ),
        (f"name: x\n{FABRIC}: [\n", "scenario.yaml:3: required YAML"),
    ],
)
def test_mistakes(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        load(tmp_path, text)


def test_an_unknown_name_says_which_was_meant_or_where_they_are():
    for name, todo in (
        ("first-ligth-q3", "did you mean first-light-q3?"),
        ("xyzzy", "polarfab emulate has the names"),
    ):
        with pytest.raises(InputError) as error:
            load_scenario(name)
        assert str(error.value) == (
            "SCENARIO: required a scenario file, a build or the name of a scenario, "
            f"given {name}; {todo}"
        )


GROUPS = """name: groups
fabric:
  name: lab
  topology: {family: polarfly, q: 4}
  routing: {protect: module}
  inventory: inventory.yaml
engine: model
traffic: {probe: {}}
timeline:
  - {each: module, sample: 3, expect: {lost: 0}}
  - {group_down: "module:n3/m1", expect: {lost: 0}}
  - {group_up: "module:n3/m1"}
  - {group_down: "risk:feed"}
"""


RISKS = """node_types:
  leaf:
    ports:
      - {name: "m{module}/{}", modules: 2, count: 4, role: fabric}
      - {name: "h{}", role: host, count: 1}
generate: {type: leaf, racks: {units: 5}}
shared_risks: [{name: feed, fails: [n0, "module:n1/m0"]}]
"""


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("timeline: [{link_down: 0-1, expect: {lost: 0}}]", "required traffic with a probe"),
        ("timeline: [{link_down: 0-1, expect: {converged_within: 2}}]", "traffic with a probe"),
        ("expect: {lost: 0}", "required a known key"),
        ("expect: {throughput: 1}", "required traffic with flows"),
    ],
)
def test_what_nobody_would_look_at_is_not_expected(tmp_path, lines, problem):
    """Such a scenario passed."""
    file = tmp_path / "scenario.yaml"
    text = "name: x\nfabric: {name: x, topology: {family: polarfly, q: 2}}\n"
    file.write_text(f"{text}{lines}\n")
    with pytest.raises(InputError, match=problem):
        load_scenario(str(file))


def test_groups_that_share_a_risk_fail(tmp_path):
    """A module takes its links; a group of nodes and links is one event."""
    file = tmp_path / "scenario.yaml"
    file.write_text(GROUPS)
    (tmp_path / "inventory.yaml").write_text(RISKS)
    loaded = load_scenario(str(file))
    build = compile_fabric(loaded.fabric)
    names = build.wiring.names
    found = cases(loaded.scenario, build, loaded.document)
    assert [case.group for case in found[:3]] == ["each module down, 3"] * 3
    assert all(case.event.links == case.undo.links for case in found[:3])
    down, up = found[3:5]
    assert down.event.links == up.event.links
    assert all(names[3] in link for link in down.event.links)
    (both,) = found[5:]
    assert both.event.switches == names[:1]
    assert all(names[1] in link for link in both.event.links)
    file.write_text(GROUPS.replace("each: module", "each: risk"))
    assert cases(load_scenario(str(file)).scenario, build, None)[0].event == both.event
    file.write_text(GROUPS.replace("each: module", "each: cage"))
    loaded = load_scenario(str(file))
    with pytest.raises(InputError, match="breakout"):
        cases(loaded.scenario, build, loaded.document)
