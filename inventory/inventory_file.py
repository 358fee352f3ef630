"""Load inventory.yaml, and check it: each value by itself, and values against each other.

`load_inventory` is for an inventory alone. A fabric with an inventory calls `examine`, and reports
the mistakes together with its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from inventory.document_errors import value_and_findings, well_formed
from inventory.floor_checks import Data
from inventory.inventory_checks import check_inventory
from inventory.library import library_type
from inventory.model import Inventory, Node, Nodes
from inventory.problems import Finding, InputError
from inventory.yamlfile import Document, read_or_take


def load_inventory(source: str | Path | Data) -> tuple[Inventory, Document]:
    """The inventory in a YAML file (`-`: standard input) or a mapping, as a value and a document.

    The node types that the inventory takes from the library are added to its own.

    Raises:
        InputError: the inventory has mistakes; all of them.
    """
    document = read_or_take(source)
    examined = examine(document)
    if examined.inventory is None or examined.findings:
        raise InputError(document.report(examined.findings))
    return examined.inventory, document


@dataclass(frozen=True, slots=True)
class ExaminedInventory:
    """An inventory and its mistakes."""

    inventory: Inventory | None
    """The inventory; None if its form is wrong."""
    nodes: Nodes
    """The well-formed nodes, each with its index in the list."""
    findings: tuple[Finding, ...]
    """Every mistake."""


def examine(document: Document) -> ExaminedInventory:
    """Check an inventory. Files that it names are relative to its own folder."""
    context = {"folder": Path(document.file).parent}
    inventory, wrong_values = value_and_findings(Inventory, document.data, context)
    nodes = _well_formed_nodes(document.data)
    wrong_paths = {finding.path for finding in wrong_values}
    clashes = [
        finding
        for finding in check_inventory(nodes, document.data, context)
        if finding.path not in wrong_paths
    ]
    if inventory is not None and not wrong_values and not clashes:
        inventory = _with_library(inventory)
    return ExaminedInventory(inventory, nodes, (*wrong_values, *clashes))


def _with_library(inventory: Inventory) -> Inventory:
    """The inventory with every type that it uses among its node_types."""
    used = {node.type for node in inventory.nodes}
    if inventory.generate:
        used |= {part.type for part in inventory.generate.parts}
    missing = sorted(used - set(inventory.node_types))
    from_library = {name: library_type(name) for name in missing}
    return inventory.model_copy(update={"node_types": {**inventory.node_types, **from_library}})


def _well_formed_nodes(data: Data) -> Nodes:
    """The nodes and their indexes in the list, without the keys that have mistakes."""
    listed = data.get("nodes")
    if not isinstance(listed, list):
        return []
    nodes = ((i, well_formed(Node, value)) for i, value in enumerate(listed))
    return [(i, node) for i, node in nodes if node is not None]
