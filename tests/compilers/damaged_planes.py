"""A fabric of two planes, one of them damaged."""

from pathlib import Path

from compilers.planes import compile_planes
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build


def damaged_planes(folder: Path, damaged: int) -> tuple[Build, ...]:
    """Two planes of q = 2, two hosts a switch.

    In one of them the second host of switch 3 has no port, and switch 5 is not there yet.
    """
    rows = ["node_types: {leaf: {ports: [{count: 5}]}}", "nodes:"]
    for plane in (1, 2):
        more = {3: "disabled_ports: [eth5]", 5: "state: planned"} if plane == damaged else {}
        own = f"type: leaf, plane: {plane}"
        rows += [
            f"  - {{name: p{plane}-{v}, {own}, vertex: {v}, {more.get(v, '')}}}" for v in range(7)
        ]
    (folder / "inventory.yaml").write_text("\n".join(rows))
    (folder / "fabric.yaml").write_text(
        "{name: lab, topology: {family: polarfly, q: 2}, planes: 2, hosts_per_node: 2, "
        "inventory: inventory.yaml, addressing: {ipv6: 'fd00::/48'}}"
    )
    return tuple(compile_planes(load_fabric(folder / "fabric.yaml")))
