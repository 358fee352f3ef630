"""Load fabric.yaml and the inventory it names, and check them against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from compilers.spec.address_blocks import block_count, ipv4_block_length
from compilers.spec.fabric_spec import (
    EQUAL_COST,
    AddressingSpec,
    FabricSpec,
    RoutingSpec,
    TopologySpec,
)
from compilers.spec.policy import CONSTRUCTED, LARGEST_SEARCH
from compilers.spec.share import share
from compilers.topology import FAMILIES
from compilers.topology.families import check_topology, hierarchy
from inventory.inventory_file import load_inventory, schema_of
from inventory.model import Inventory
from inventory.problems import InputError, KeyPath, Problem, few, shown
from inventory.validate import part, validate
from inventory.yamlfile import STDIN, Document, Unreadable, from_values, read

PLANE_LISTS = ("nodes", "cables", "dead_links")


@dataclass(frozen=True, slots=True, eq=False)
class LoadedFabric:
    """A spec and inventory that fit each other, and the documents that they were read from.

    inventory is None where the spec names none. plane is from 1 where this is one of several planes
    (`compilers.planes`), 0 elsewhere; places then tells where entries of the inventory's lists
    stand in its file.
    """

    spec: FabricSpec
    inventory: Inventory | None
    fabric_document: Document
    inventory_document: Document | None
    plane: int = 0
    places: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def inputs(self) -> dict[str, str]:
        """The SHA-256 digest of each file that was read, by its role."""
        documents = {"fabric": self.fabric_document, "inventory": self.inventory_document}
        return {role: document.sha256 for role, document in documents.items() if document}

    def locate(self, path: KeyPath) -> tuple[str, int]:
        """The file and line of a value of either document: ("nodes", 3, "type")."""
        hardware = self.inventory_document
        match path:
            case (str(word), int(i), *rest) if word in self.places:
                path = (word, self.places[word][i], *rest)
        here = hardware if hardware and path[0] in Inventory.model_fields else self.fabric_document
        return here.file, here.line(path)


def load_fabric(
    source: str | Path | Mapping[str, Any], document: Document | None = None
) -> LoadedFabric:
    """The fabric of a YAML file (`-`: standard input) or of a mapping, with its inventory.

    The inventory's file name is relative to the fabric's; in a mapping, `inventory` may be the
    inventory itself. `document` is the file's content, or the part of it that describes the
    fabric, where it has been read already.

    Raises:
        InputError: every mistake in either, and where they do not fit.
    """
    where: dict[str, Any] | str | None
    if isinstance(source, Mapping):
        document = from_values(source)
        where = document.data.get("inventory")
        if isinstance(where, dict):
            del document.data["inventory"]
    else:
        document = document or read(source)
        where = _beside(source, document)
    problems: list[Problem] = []
    spec = inventory = hardware = None
    try:
        spec = validate(FabricSpec, document)
    except InputError as error:
        problems += error.problems
    problems += _check(document)
    if isinstance(where, str | dict):
        try:
            inventory, hardware = load_inventory(where)
        except Unreadable as error:
            path, named = ("inventory",), shown(document.data["inventory"], 160)
            problems += (
                document.problem(path, p.required, f"{named}, {p.given}", p.todo)
                for p in error.problems
            )
        except InputError as error:
            problems += error.problems
    if spec is not None and inventory is not None and hardware is not None:
        problems += _too_many_hosts(spec.hosts_per_node, inventory, hardware)
        problems += _of_no_plane(spec.planes, inventory, hardware)
    if spec is None or problems:
        raise InputError(sorted(problems, key=lambda p: (p.file != document.file, p.line)))
    return LoadedFabric(spec, inventory, document, hardware)


def require_one_plane(loaded: LoadedFabric) -> None:
    """Pass where the fabric has one plane.

    Raises:
        InputError: it has several.
    """
    if (count := loaded.spec.planes) > 1:
        todo = "compile it, and name the folder of a plane: BUILD/plane-1"
        problem = loaded.fabric_document.problem(("planes",), "one plane here", str(count), todo)
        raise InputError(problem)


def schema(kind: Literal["fabric", "inventory"]) -> dict[str, Any]:
    """The JSON schema of fabric.yaml or inventory.yaml, for an editor's completion."""
    return schema_of(FabricSpec if kind == "fabric" else Inventory)


def _beside(path: str | Path, document: Document) -> str | None:
    """The inventory's file name, seen from here; None where the fabric names none."""
    named = document.data.get("inventory")
    if not isinstance(named, str):
        return None
    if named != STDIN:
        return named if str(path) == STDIN else str(Path(path).parent / named)
    if str(path) == STDIN:
        problem = document.problem(
            ("inventory",), "a file name", "-", "the fabric itself is read from standard input"
        )
        raise InputError(problem)
    return STDIN


def _check(document: Document) -> list[Problem]:
    """What the sections say beyond their form; those with a mistake of form are left out."""
    data = document.data
    topology = part(TopologySpec, data.get("topology"))
    addressing = part(AddressingSpec, data.get("addressing", {}))
    routing = part(RoutingSpec, data.get("routing", {}))
    problems = _without_tables(routing, document) if routing else []
    if topology is None:
        return problems
    wrong = check_topology(topology.family, topology.parameters())
    if wrong:
        return problems + [_anchored(problem, document) for problem in wrong]
    family, parameters = topology.family, topology.parameters()
    order = FAMILIES[family].order(parameters)
    if routing is not None:
        problems += _routing(routing, topology, order, document)
    hosts = data.get("hosts_per_node", 1)
    if addressing is not None and type(hosts) is int and 0 <= hosts <= 1024:
        shape = order, hierarchy(family, parameters)
        planes = data.get("planes", 1)
        count = planes if type(planes) is int and 1 <= planes <= 16 else 1
        problems += _small_pools(addressing, shape, hosts, count, document)
    return problems


def _anchored(problem: Problem, document: Document) -> Problem:
    """A family's problem, whose key is a parameter, at its place in the file."""
    path = ("topology", problem.key)
    return document.problem(path, problem.required, shown(problem.given), problem.todo)


def _without_tables(routing: RoutingSpec, document: Document) -> list[Problem]:
    """A policy that no tables can hold."""
    if routing.balance != "valiant":
        return []
    given = "valiant, whose packets carry their intermediate: rows by destination have no place"
    todo = "write compact-valiant, which goes by a neighbour and needs none"
    return [document.problem(("routing", "balance"), "a policy that tables hold", given, todo)]


def _routing(
    routing: RoutingSpec, topology: TopologySpec, order: int, document: Document
) -> list[Problem]:
    """Shares that have no value at this q, and fabrics too large to search."""
    problems = []
    for word in ("minimal_share", "threshold"):
        text = getattr(routing, word)
        if (word, text) == ("minimal_share", EQUAL_COST):
            continue
        try:
            share(text, topology.q)
        except ValueError:
            required = f"an expression from 0 to 1 at q={topology.q}, of numbers, q and + - * / ( )"
            problems.append(document.problem(("routing", word), required, text, "such as 1/q"))
    policy = (routing.balance, routing.protect)
    if (
        order > LARGEST_SEARCH
        and topology.family not in CONSTRUCTED
        and policy != ("minimal", "none")
    ):
        problems.append(
            document.problem(
                ("routing",),
                f"minimal routes without protection for more than {LARGEST_SEARCH:,} switches",
                f"{policy[0]} and {policy[1]} for {order:,}",
                "their alternates and repairs are searched for; in PolarFly they are constructed",
            )
        )
    return problems


def _small_pools(
    addressing: AddressingSpec,
    shape: tuple[int, int],
    hosts: int,
    planes: int,
    document: Document,
) -> list[Problem]:
    """Pools that cannot give every vertex its block; `shape` is (order, hierarchy)."""
    block = ipv4_block_length(hosts)
    order, count = shape[0], block_count(*shape)
    bits = (count - 1).bit_length() + (planes - 1).bit_length()
    longest = block - bits
    spare = f", {shape[1]} a supernode in {count * shape[1] // order} blocks" * (shape[1] > 1)
    spare += f", in {planes} planes" * (planes > 1)
    problems = []
    if longest < 0:
        todo = "lower hosts_per_node or the topology's size: no pool is large enough"
        given = f"{count:,} blocks of /{block}, more than IPv4 has"
        path: KeyPath = ("hosts_per_node",)
        problems.append(document.problem(path, "hosts that IPv4 can number", given, todo))
    for word, pool, length, most in (
        ("ipv4", addressing.ipv4, block, longest),
        ("ipv6", addressing.ipv6, 64, 64 - bits),
    ):
        if pool is not None and most >= 0 and pool.prefixlen > most:
            problems.append(
                document.problem(
                    ("addressing", word),
                    f"a pool of /{most} or larger: {order:,} vertices with a /{length} each{spare}",
                    str(pool),
                    f"write an address with /{most}",
                )
            )
    return problems


def _of_no_plane(planes: int, inventory: Inventory, document: Document) -> list[Problem]:
    plane = {node.name: node.plane or 1 for node in inventory.nodes}
    problems = [
        document.problem(
            ("nodes", i, "plane"), f"a plane from 1 to {planes} (planes)", str(node.plane)
        )
        for i, node in enumerate(inventory.nodes)
        if (node.plane or 1) > planes
    ]
    for word in ("cables", "dead_links"):
        for i, link in enumerate(getattr(inventory, word)):
            if link.a in plane and link.b in plane and plane[link.a] != plane[link.b]:
                ends = f"{link.a} in plane {plane[link.a]}, {link.b} in plane {plane[link.b]}"
                problems.append(document.problem((word, i), "both ends in one plane", ends))
    return few(problems)


def _too_many_hosts(most: int, inventory: Inventory, document: Document) -> list[Problem]:
    return few(
        document.problem(
            ("nodes", i, "hosts"),
            f"at most {most} a node (hosts_per_node)",
            f"{len(node.hosts)}",
            "raise hosts_per_node or remove hosts",
        )
        for i, node in enumerate(inventory.nodes)
        if len(node.hosts) > most
    )
