"""An editor that follows the schemas refuses what `validate` refuses of single values."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from compilers.spec.fabric_spec import FabricSpec
from inventory.document_errors import value_and_findings
from inventory.json_schema import schema_of
from inventory.model import Inventory
from mininet_scenarios.scenario.scenario_file import ScenarioFile

EXAMPLES = Path(__file__).parents[3] / "examples"
FABRIC = """
name: lab
topology: {family: polarstar, q: 3, supernode: paley, degree: 4, seed: 1, sides: 3x3, file: g.txt}
hosts_per_node: 2
planes: 2
addressing: {ipv4: 10.0.0.0/8, ipv6: "fd00::/48", gateway_mac: "02:50:46:00:00:01"}
routing: {balance: compact-valiant, protect: link, minimal_share: 1/q, disjoint: edge,
          adjacent: bounce, largest_share: 0.9, demand: worst-case, on_missing: minimal}
system: frr
base: {management: {length: 24, gateway: 192.0.2.1, interface: eth0}, ntp: [192.0.2.2],
       syslog: ["2001:db8::1"], asn: 4200000000}
vars: {a: 1}
inventory: inventory.yaml
allocations: numbers.csv
"""
INVENTORY = """
node_types:
  t:
    ports: [{name: "eth{}", count: 8, first: 1, role: any, step: 1, modules: 1, breakout: 1,
             speed: 100, lanes: 4, label: "p{}", names: {sonic: "Ethernet{port*4}"}, fec: rs,
             mtu: 9000}]
    units: 1
    host_count: 2
    tables: {lpm_rows: 1000, groups: 10, ecmp_width: 8}
    openflow: {profile: openflow13, buckets: 8, tables: 3}
    buffer: {priorities: [3, 4], size: 1000000, cell: 256, cable: 100, reaction: 1000,
             ecn_min: 1000, ecn_max: 2000, ecn_percent: 10}
    capabilities: [openflow, ipv6]
    manufacturer: Acme
nodes:
  - {name: a, type: t, vertex: 0, datapath_id: 0x11, management: 192.0.2.1, rack: r1, unit: 3,
     serial: S1, guid: "0x0002c90300001234", state: installed, disabled_ports: [eth1], plane: 1,
     group: g, asn: 65001, hosts: [{name: h, port: eth2, mac: "02:00:00:00:00:01"}]}
racks: [{name: r1}]
groups: {g: {x: 1}}
"""
DOCUMENTS: dict[str, tuple[type[BaseModel], Any]] = {
    "fabric": (FabricSpec, yaml.safe_load(FABRIC)),
    "inventory": (Inventory, yaml.safe_load(INVENTORY)),
}
JUNK = (None, True, -5, 10**20, 0.5, "", "a\tb", "no such thing!", [], {}, [[]], {"a": {"b": 1}})
BETWEEN = (
    *("('topology', 'family')", "('routing', 'minimal_share')", "('routing', 'largest_share')"),
    "('nodes', 0, 'type')",
)
"""Values that `validate` refuses beside others: families, shares at a q, types of nodes."""
FREE = {("vars",), ("groups", "g")}
"""The user's own variables, of any kind."""


def paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*above, key)
        if isinstance(inner, dict | list) and (*above, key) not in FREE:
            yield from paths(inner, (*above, key))


def put(document: Any, path: tuple[Any, ...], value: Any, key: str = "") -> Any:
    """The document with another value in a place, or one more key there."""
    changed = copy.deepcopy(document)
    at = changed
    for word in path[: len(path) if key else -1]:
        at = at[word]
    at[key or path[-1]] = value
    return changed


def wrong_documents(document: Any) -> Iterator[tuple[str, Any]]:
    for path in paths(document):
        for value in JUNK:
            yield f"{path}: {value!r}", put(document, path, value)
    for path in ((), *paths(document)):
        at = document
        for word in path:
            at = at[word]
        if isinstance(at, dict) and path not in FREE:
            yield f"{path}: one key more", put(document, path, "x", "nonsense!")


def verdicts(kind: str, editor: Draft202012Validator) -> dict[str, tuple[bool, bool]]:
    """What `validate` and an editor say of each document, true where it is taken."""
    model, document = DOCUMENTS[kind]
    return {
        what: (value_and_findings(model, each)[0] is not None, editor.is_valid(each))
        for what, each in wrong_documents(document)
    }


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_an_editor_refuses_what_validate_refuses(kind: str) -> None:
    model, document = DOCUMENTS[kind]
    assert value_and_findings(model, document)[1] == []
    editor = Draft202012Validator(schema_of(model))
    errors = [*editor.iter_errors(document)]
    assert not errors, errors[0]
    said = verdicts(kind, editor)
    refused = [what for what, (taken, _) in said.items() if not taken]
    assert len(refused) > 250
    assert [what for what in refused if said[what][1]] == []
    early = [what for what, (taken, shown) in said.items() if taken and not shown]
    assert [what for what in early if not what.startswith(BETWEEN)] == []


def test_examples_are_taken() -> None:
    for kind, (model, _) in DOCUMENTS.items():
        editor = Draft202012Validator(schema_of(model))
        for file in EXAMPLES.glob(f"*/{kind}*.yaml"):
            errors = [*editor.iter_errors(yaml.safe_load(file.read_text()))]
            assert not errors, (file, errors[0])


@pytest.mark.parametrize("model", [FabricSpec, Inventory, ScenarioFile])
def test_bounds_are_in_words_of_json_schema(model: type[BaseModel]) -> None:
    schema = schema_of(model)
    text = json.dumps(schema)
    Draft202012Validator.check_schema(schema)
    assert not any(f'"{word}": ' in text for word in ("ge", "le", "gt", "lt"))


def test_every_key_of_a_fabric_is_described() -> None:
    schema = schema_of(FabricSpec)
    models = {"fabric": schema, **schema["$defs"]}
    bare = [
        f"{name}.{key}"
        for name, part in models.items()
        for key, value in part["properties"].items()
        if not value.get("description")
    ]
    assert not bare
    sharing = schema["$defs"]["RoutingSpec"]["properties"]["transit"]["description"]
    assert sharing.endswith("over all shortest paths as well (`ecmp`).")
