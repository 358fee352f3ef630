"""What is compiled and rendered from a hundred specs, as digests: no change of them by accident.

`golden/digests/builds.txt` has the identity of each build, `rendered*.txt` and `examples.txt` the
digest of every target's files. `intended.md` there says which were changed on purpose, and why.
"""

from __future__ import annotations

import hashlib
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from compilers.pipeline import compile_placed
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import with_identity
from compilers.wiring.placed_fabric import PlacedFabric, place_fabric
from inventory.problems import InputError
from polarfab.fabric import Fabric

EXAMPLES = Path(__file__).parents[2] / "examples"
TARGETS = (
    *("eos", "frr", "junos", "linux", "nvue", "nxos", "opensm", "ovs"),
    *("sonic", "srlinux", "srv6"),
)

RECIPE = ".polarfab.json"

POLARSTARS = {
    "ps3iq3": {"q": 3, "supernode": "inductive-quad", "degree": 3},
    "ps4p2": {"q": 4, "supernode": "paley", "degree": 2},
}
BASELINES = {
    "sf5": {"family": "slimfly", "q": 5},
    "df2": {"family": "dragonfly", "h": 2},
    "hx333": {"family": "hyperx", "sides": "3x3x3"},
    "jf30": {"family": "jellyfish", "nodes": 30, "degree": 6, "seed": 1},
    "ft4": {"family": "fat-tree", "k": 4},
    "mlfm4": {"family": "mlfm", "n": 4},
    "bf3": {"family": "bundlefly", "q": 3, "degree": 2},
    "mf": {"family": "megafly", "h": 2, "a": 4},
}


@dataclass(frozen=True, slots=True)
class Case:
    """A spec to compile; damage: seed, nodes that are missing, links that are dead."""

    name: str
    topology: dict[str, Any]
    routing: dict[str, Any] = field(default_factory=dict)
    damage: tuple[int, int, int] | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def compiled(self) -> Build:
        """Its build, in memory.

        Raises:
            InputError: this family cannot do what the case asks for.
        """
        spec = {"name": "lab", "topology": self.topology, "routing": self.routing} | self.more
        placed = place_fabric(load_fabric(spec))
        return compile_placed(damaged(placed, *self.damage) if self.damage else placed)


def damaged(placed: PlacedFabric, seed: int, nodes: int, links: int) -> PlacedFabric:
    """The fabric with some nodes planned only and some links dead."""
    draw = random.Random(seed)  # noqa: S311
    inventory, wiring = placed.inventory, placed.wiring
    names = list(wiring.names)
    gone = {names[at] for at in draw.sample(range(len(names)), nodes)}
    cables = [(s, int(t)) for s in range(len(names)) for t in wiring.far[s] if t > s]
    dead_link = type(inventory).model_fields["dead_links"].annotation.__args__[0]
    here = tuple(
        node.model_copy(update={"state": "planned"}) if node.name in gone else node
        for node in inventory.nodes
    )
    dead = tuple(dead_link(a=names[a], b=names[b]) for a, b in draw.sample(cables, links))
    return replace(
        placed, inventory=inventory.model_copy(update={"nodes": here, "dead_links": dead})
    )


def cases() -> Iterator[Case]:
    """The specs: every family, balance and protection, and damaged fabrics."""

    def routed(name: str, topology: dict[str, Any], *pairs: tuple[str, str]) -> Iterator[Case]:
        for balance, protect in pairs:
            routing = {"balance": balance, "protect": protect}
            yield Case(f"{name}-{balance}-{protect}", topology, routing)

    def polarfly(q: int) -> dict[str, Any]:
        return {"family": "polarfly", "q": q}

    minimal = ("minimal", "none")
    for q in (2, 4, 8, 9):
        yield from routed(f"pf{q}", polarfly(q), minimal)
    balances = ("compact-valiant", "spread", "ecmp", "minimal")
    for q in (3, 5, 7):
        for balance in balances:
            levels = ("none", "link", "node") if q < 7 else ("node",)
            yield from routed(f"pf{q}", polarfly(q), *((balance, level) for level in levels))
    yield from routed("pf9", polarfly(9), ("compact-valiant", "node"), ("spread", "node"))
    yield from routed("pf5", polarfly(5), ("valiant", "node"), ("valiant", "none"))
    yield from routed("pf7", polarfly(7), ("valiant", "link"))
    for balance, protect, more in (
        ("compact-valiant", "node", {"adjacent": "bounce"}),
        ("compact-valiant", "node", {"disjoint": "none"}),
    ):
        name = f"pf7-{balance}-{protect}-{'-'.join(more.values())}"
        yield Case(name, polarfly(7), {"balance": balance, "protect": protect} | more)
    several = (
        *(minimal, ("minimal", "node"), ("compact-valiant", "node")),
        ("ecmp", "link"),
    )
    for name, parameters in POLARSTARS.items():
        yield from routed(name, {"family": "polarstar"} | parameters, *several)
    for q in (3, 4):
        yield from routed(f"pn{q}", {"family": "pn", "q": q}, *several[:4])
        marked = (("spread", "node"), ("spread", "none"))
        yield from routed(f"oft{q}", {"family": "oft", "q": q}, *several[:4], *marked)
    for name, topology in BASELINES.items():
        yield from routed(name, topology, *several[1:4], ("ecmp", "none"), ("valiant", "none"))
        for protect in ("none", "node"):
            routing = {"balance": "ecmp", "protect": protect, "transit": "ecmp"}
            yield Case(f"{name}-transit-{protect}", topology, routing)
    polarstar = {"family": "polarstar"} | POLARSTARS["ps3iq3"]
    for seed in range(2):
        for name, topology, routing, nodes, links in (
            ("pf5", polarfly(5), ("compact-valiant", "node"), 2, 3),
            ("pf7", polarfly(7), ("compact-valiant", "link"), 3, 6),
            ("ps3iq3", polarstar, ("compact-valiant", "node"), 2, 4),
            ("pn4", {"family": "pn", "q": 4}, ("compact-valiant", "node"), 2, 3),
            ("oft3", {"family": "oft", "q": 3}, ("ecmp", "link"), 1, 3),
            ("sf5", BASELINES["sf5"], ("ecmp", "node"), 2, 4),
        ):
            policy = dict(zip(("balance", "protect"), routing, strict=True))
            yield Case(f"{name}-damaged-{seed}", topology, policy, (seed, nodes, links))
    dual = {"hosts_per_node": 2, "addressing": {"ipv6": "fd00:1::/32"}}
    for balance, protect in (minimal, ("compact-valiant", "node"), ("spread", "node")):
        routing = {"balance": balance, "protect": protect}
        yield Case(f"pf3-dual-{balance}", polarfly(3), routing, None, dual)


def identity(case: Case) -> str:
    """The build's identity, or the first words of why there is none."""
    try:
        return with_identity(case.compiled()).identity
    except InputError as error:
        return f"refused: {' '.join(str(error).split())[:60]}"


def examples() -> Iterator[tuple[str, Fabric]]:
    """The fabrics of `examples/`."""
    for file in sorted(EXAMPLES.glob("*/fabric.yaml")):
        yield file.parent.name, Fabric.from_spec(file).compile()


def rendered(fabric: Fabric, target: str) -> str:
    """The digest of all that `render` writes for switches; or the first words of a refusal.

    The recipe is left out: it has a digest of the code that reads the files back.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "out"
        try:
            fabric.render(target, folder, unverified=True, check=False)
        except InputError as error:
            return f"refused: {' '.join(str(error).split())[:60]}"
        digest = hashlib.sha256()
        files = (path for path in folder.rglob("*") if path.is_file() and path.name != RECIPE)
        for file in sorted(files):
            digest.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes())
        return digest.hexdigest()[:16]
