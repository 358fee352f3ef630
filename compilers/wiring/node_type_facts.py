"""Node types and their ports, as a build keeps them.

`node_type_facts` copies a type from the inventory when a fabric is compiled. Fields say "" or 0
where the inventory says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import NodeType, PortBlock


@dataclass(frozen=True, slots=True)
class CageBlock:
    """A block of ports: cages on modules, each cage perhaps broken out into several ports."""

    modules: int
    """How many modules (line cards) the block has."""
    first_module: int
    """The number of the first module."""
    count: int
    """The number of cages of a module."""
    breakout: int
    """The number of ports that a cage is broken out into; 1 for none."""
    names: Mapping[str, str]
    """By target, the pattern of the ports' names."""
    speed: int
    """The speed of a port in Gb/s."""
    lanes: int
    """The number of lanes (serdes) of a port."""
    fec: str
    """The forward error correction: rs, fc or off."""
    mtu: int
    """The largest IP packet in bytes."""


@dataclass(frozen=True, slots=True)
class BufferFacts:
    """The packet buffer of a node type: `PacketBuffer` of the inventory."""

    priorities: tuple[int, ...]
    """The lossless priorities."""
    size: int
    """The size of the buffer in bytes."""
    cell: int
    """The size of a cell in bytes."""
    cable: int
    """The longest cable in metres for which the buffer has headroom."""
    reaction: int
    """The nanoseconds from sending a pause frame to the last byte that still comes, without the
    cable."""
    ecn_min: int
    """The bytes in a queue from which packets are marked."""
    ecn_max: int
    """The bytes in a queue from which `ecn_percent` of the packets are marked."""
    ecn_percent: int
    """The per cent of packets that are marked at `ecn_max`."""


@dataclass(frozen=True, slots=True)
class NodeTypeFacts:
    """A node type and its ports; index n - 1 of each tuple over ports is port n."""

    name: str
    """The name in the inventory."""
    units: int
    """The height of a node in rack units."""
    manufacturer: str
    """The manufacturer."""
    model: str
    """The model; the name of the type where unknown."""
    part_number: str
    """The manufacturer's part number."""
    limits: Mapping[str, int]
    """The entries of the inventory's `TableLimits`."""
    openflow: Mapping[str, Any]
    """The entries of the inventory's `OpenFlowKeys`."""
    capabilities: tuple[str, ...] | None
    """The features that the type supports; None where unknown."""
    module: tuple[int, ...]
    """The module of each port, from 0, through the blocks of the type."""
    label: tuple[str, ...]
    """What is printed next to each port."""
    speed: tuple[int, ...]
    """The speed of each port in Gb/s."""
    lanes: tuple[int, ...]
    """The number of lanes (serdes) of each port."""
    connector: tuple[str, ...]
    """The connector of each port."""
    role: tuple[str, ...]
    """What each port is for: any, fabric or host."""
    sockets: tuple[tuple[str, ...], ...]
    """The names of each port's sockets; the name of the port where it has one socket."""
    blocks: tuple[CageBlock, ...]
    """The blocks of ports, in the order of port numbers."""
    platform: tuple[tuple[str, ...], ...]
    """Name, lanes, cage, breakout mode and alias of each port in SONiC's platform file.

    () without such a file.
    """
    buffer: BufferFacts | None
    """The packet buffer; None where unknown."""
    plug: tuple[int, ...] = ()
    """The position of each port on the face plate, from 1, if fibres are shuffled inside the node.

    0 for a port that is not behind the shuffle; () without one.
    """

    @property
    def parallel(self) -> tuple[int, ...]:
        """How many cables each port takes."""
        return tuple(map(len, self.sockets))


def node_type_facts(name: str, node_type: NodeType) -> NodeTypeFacts:
    """Return a node type of the inventory as a build keeps it."""
    from compilers.wiring.type_ports import TypePorts

    ports = TypePorts.of(node_type)
    block_of_port = [block for block in node_type.ports for _ in range(block.total)]
    plug_of_port = {port: n for n, port in enumerate(node_type.plugs(), 1)}
    return NodeTypeFacts(
        name=name,
        units=node_type.units,
        manufacturer=node_type.manufacturer or "",
        model=node_type.model or name,
        part_number=node_type.part_number or "",
        limits=node_type.tables.model_dump(exclude_none=True),
        openflow=node_type.openflow.model_dump(exclude_none=True) if node_type.openflow else {},
        capabilities=node_type.capabilities,
        module=ports.module,
        label=ports.labels,
        speed=tuple(speed or 0 for speed in ports.speed),
        lanes=tuple(block.lanes or 0 for block in block_of_port),
        connector=tuple(block.connector or "" for block in block_of_port),
        role=tuple(block.role for block in block_of_port),
        sockets=ports.sockets,
        blocks=tuple(_cage_block(block, node_type) for block in node_type.ports),
        platform=tuple(astuple(p) for p in node_type.platform_ports()),
        buffer=BufferFacts(**node_type.buffer.model_dump()) if node_type.buffer else None,
        plug=tuple(plug_of_port.get(port, 0) for port in ports.names) if plug_of_port else (),
    )


def _cage_block(block: PortBlock, node_type: NodeType) -> CageBlock:
    """Return a port block of the inventory as a build keeps it."""
    return CageBlock(
        modules=block.modules,
        first_module=block.first_module,
        count=block.count,
        breakout=block.breakout,
        names=node_type.names | block.names,
        speed=block.speed or 0,
        lanes=block.lanes or 0,
        fec=block.fec or "",
        mtu=block.mtu or 0,
    )
