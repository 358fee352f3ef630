"""The models of an inventory: node types with ports, nodes of these types, and the whole file.

Each class is a mapping of inventory.yaml; its fields are the keys, and their docstrings are what
users read about them (`inventory.field_docs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from inventory.floor import Cable, Cabling, DeadLink, Generate, Placement, Rack, SharedRisk
from inventory.hosts import Host, HostFile
from inventory.panels import Panels
from inventory.sonic_platform import Cage, PlatformFile, PlatformPort, platform_ports
from inventory.values import (
    NAMED,
    AsNumber,
    DatapathId,
    Guid,
    HostPattern,
    Line,
    LongLine,
    Management,
    Model,
    Name,
    PortName,
    SystemPortName,
    TypeName,
    Vars,
    Whole,
)

FASTEST = 9_999
"""Gb/s of the fastest port; a larger number is probably in Mbit/s."""
Limit = Annotated[Whole, Field(ge=0)]
"""The most entries of a table."""
Priority = Annotated[Whole, Field(ge=1, le=5)]
"""A priority of PFC that can be lossless."""
HostCount = Annotated[Whole, Field(ge=0, le=1024)]
"""The number of hosts of a node."""
PortRole = Literal["any", "fabric", "host", "reserved"]
"""The links that a port may have."""
Capability = Literal[
    "openflow", "ipv6", "weights", "ingress", "repair", "aggregates", "srv6", "infiniband"
]
"""An ability of a switch that a policy or a target may need."""


class PortBlock(Model):
    """A run of equal ports in cages, over one or several modules (optical modules, line cards).

    A cage is one port, or `breakout` parts of one. Port numbers (OpenFlow, from 1) run on over the
    blocks of a type in their order.

    In `name` and `label`, {} is the number, {module} the number of the module, and {lane} the part
    of a cage. A name with {module} begins at `first` in each module, other names run on. Without
    {lane} the parts are numbered like ports.
    """

    name: PortName = "eth{}"
    """The names of the ports."""
    count: Annotated[Whole, Field(ge=1, le=65_000)]
    """The cages of a module."""
    first: Annotated[Whole, Field(ge=0, le=1_000_000)] = 1
    """The first number in names."""
    role: PortRole = "any"
    """The links that the ports may have."""
    step: Annotated[Whole, Field(ge=1, le=1000)] = 1
    """The distance between two numbers in names."""
    modules: Annotated[Whole, Field(ge=1, le=1000)] = 1
    """The number of modules."""
    first_module: Annotated[Whole, Field(ge=0, le=10_000)] = 0
    """The number of the first module in names."""
    breakout: Annotated[Whole, Field(ge=1, le=16)] = 1
    """The ports that a cage is split into."""
    first_lane: Annotated[Whole, Field(ge=0, le=16)] = 0
    """The number of the first part of a cage in names."""
    speed: Annotated[Whole, Field(ge=1, le=FASTEST)] | None = None
    """The speed of one port in Gb/s."""
    lanes: Annotated[Whole, Field(ge=1, le=64)] | None = None
    """The lanes of one port."""
    connector: Line | None = None
    """The connector of the cages."""
    label: PortName | None = None
    """What is printed next to each port. Default: its name."""
    names: dict[Name, SystemPortName] = Field(default_factory=dict, json_schema_extra=NAMED)
    """The names of the ports in other systems, by target. They precede those of the type."""
    fec: Literal["rs", "fc", "off"] | None = None
    """The forward error correction."""
    mtu: Annotated[Whole, Field(ge=1280, le=65_535)] | None = None
    """The largest IP packet in bytes."""
    parallel: Annotated[Whole, Field(ge=1, le=16)] = 1
    """The cables of one port, each in a socket of its own. To the operating system it is one port,
    such as a bond.
    """
    member: PortName | None = None
    """The names of these sockets, with {lane} for the socket."""

    @property
    def total(self) -> int:
        """The number of ports of the block."""
        return self.modules * self.count * self.breakout

    def port_names(self) -> list[str]:
        """The name of each port of the block, module by module."""
        return self._fill_pattern(self.name)

    def labels(self) -> list[str]:
        """The text printed next to each port: its label, or else its name."""
        return self._fill_pattern(self.label or self.name)

    def sockets(self) -> list[tuple[str, ...]]:
        """The names of each port's sockets; a port with one socket has one name, its own."""
        if self.parallel == 1:
            return [(name,) for name in self.port_names()]
        names = self._fill_pattern(self.member or f"{self.name}.{{lane}}", self.parallel)
        starts = range(0, len(names), self.parallel)
        return [tuple(names[start : start + self.parallel]) for start in starts]

    def _fill_pattern(self, pattern: str, parts: int = 0) -> list[str]:
        """The names of a pattern, cage by cage.

        Args:
            pattern: a name with {}, {module} and {lane}.
            parts: the parts of a cage; 0 for `breakout`.
        """
        parts = parts or self.breakout
        # Without {lane} each part has a number of its own.
        numbers_per_cage = 1 if "{lane}" in pattern else parts
        restarts = "{module}" in pattern
        names = []
        for module in range(self.modules):
            text = pattern.replace("{module}", str(self.first_module + module))
            for cage in range(self.count):
                place = cage if restarts else module * self.count + cage
                for lane in range(parts):
                    offset = place * numbers_per_cage
                    if numbers_per_cage > 1:
                        offset += lane
                    number = str(self.first + self.step * offset)
                    part = str(self.first_lane + lane)
                    names.append(text.replace("{}", number).replace("{lane}", part))
        return names


class TableLimits(Model):
    """Table limits of a switch. A missing limit is not checked."""

    lpm_rows: Limit | None = None
    """The most rows of the table of longest-prefix match."""
    groups: Limit | None = None
    """The most next-hop groups."""
    ecmp_width: Limit | None = None
    """The most next hops of a group."""


class PacketBuffer(Model):
    """The packet memory of a switch, for lossless priorities (docs/concepts/channels.md)."""

    priorities: Annotated[tuple[Priority, ...], Field(min_length=1, max_length=3)]
    """The PFC priorities that it can make lossless, the first channel's first. 0, 6 and 7 have
    other uses.
    """
    size: Annotated[Whole, Field(ge=1, le=1 << 40)]
    """The packet memory in bytes."""
    cell: Annotated[Whole, Field(ge=1, le=65_536)]
    """The unit in which memory is given out, in bytes."""
    cable: Annotated[Whole, Field(ge=1, le=100_000)]
    """The longest cable at any port, in metres."""
    reaction: Annotated[Whole, Field(ge=1, le=1_000_000)]
    """The nanoseconds from a pause frame until no more bytes arrive, without the cable: both ends'
    pipelines and the neighbour's response.
    """
    ecn_min: Annotated[Whole, Field(ge=1, le=1 << 40)]
    """The bytes in a queue from which on packets are marked."""
    ecn_max: Annotated[Whole, Field(ge=1, le=1 << 40)]
    """The bytes in a queue from which on `ecn_percent` of packets are marked."""
    ecn_percent: Annotated[Whole, Field(ge=1, le=100)]
    """The percentage of packets that are marked from `ecn_max` on."""


class OpenFlowKeys(Model):
    """What a switch can do of OpenFlow 1.3: a profile, and where it differs from that."""

    profile: Literal["openflow13-ovs", "openflow13", "single-table", "few-buckets"] = (
        "openflow13-ovs"
    )
    """The profile."""
    bundles: bool | None = None
    """Whether it has the bundles of ONF extension 230."""
    experimenters: bool | None = None
    """Whether it has the actions and fields that Open vSwitch adds to OpenFlow."""
    masks: bool | None = None
    """Whether it matches some bits of metadata."""
    fast_failover: bool | None = None
    """Whether it has groups of type fast failover."""
    select_liveness: bool | None = None
    """Whether select groups skip ports that are down."""
    buckets: Annotated[Whole, Field(ge=1, le=65_535)] | None = None
    """The most buckets of a group."""
    tables: Annotated[Whole, Field(ge=1, le=255)] | None = None
    """The number of tables."""


class NodeType(Model):
    """A kind of switch."""

    ports: Annotated[tuple[PortBlock, ...], Field(min_length=1)]
    """The ports, block by block."""
    names: dict[Name, SystemPortName] = Field(default_factory=dict, json_schema_extra=NAMED)
    """The names of the ports in other systems, by target. {cage} and {port} number the cages and
    ports of the type, and {lane} the parts of a cage, each as the system counts. {module} is as in
    `PortBlock`, {serdes} is the first lane of a port among all lanes of the type, and {port*8} is
    eight times the number.
    """
    system: Name | None = None
    """The system of the nodes of the type. Default: that of fabric.yaml."""
    platform: PlatformFile = ()
    """SONiC's platform.json or port_config.ini, which has names and lanes of the ports."""
    shuffle: tuple[LongLine, ...] = ()
    """For a box whose fibres are shuffled inside, a text for each connector on its face plate, with
    the port behind each lane; `-` is dark. Connectors are X1, X2, …, and lane 2 of X3 is X3.2.
    """
    units: Annotated[Whole, Field(ge=1, le=100)] = 1
    """The height in rack units."""
    host_count: HostCount | None = None
    """The hosts of a node of the type. Default: as many as fabric.yaml gives every node."""
    tables: TableLimits = TableLimits.model_construct()
    """The limits of its tables."""
    openflow: OpenFlowKeys | None = None
    """What it can do of OpenFlow."""
    buffer: PacketBuffer | None = None
    """Its packet memory."""
    capabilities: tuple[Capability, ...] | None = None
    """What it can do. Without the key nothing is checked."""
    manufacturer: Line | None = None
    """The manufacturer."""
    model: Line | None = None
    """The manufacturer's name of the type."""
    part_number: Line | None = None
    """The manufacturer's part number."""

    def plugs(self) -> dict[str, tuple[int, int]]:
        """By port behind the shuffle, its connector and its lane there, from 1, in order."""
        return {
            port: (connector, lane)
            for connector, text in enumerate(self.shuffle, 1)
            for lane, port in enumerate(text.split(), 1)
            if port != "-"
        }

    def labels(self) -> list[str]:
        """The text on the face plate for each port: its connector and lane, or else its label."""
        lanes = {port: f"X{connector}.{lane}" for port, (connector, lane) in self.plugs().items()}
        labels = []
        for block in self.ports:
            for name, label in zip(block.port_names(), block.labels(), strict=True):
                labels.append(lanes.get(name, label))
        return labels

    def platform_ports(self) -> list[PlatformPort]:
        """The ports as SONiC's platform file names them; none without such a file.

        Raises:
            ValueError: the file is of another switch; with what is required and what it has.
        """
        cages = (
            Cage(block.breakout, block.speed or 0, block.lanes or 0)
            for block in self.ports
            for _ in range(block.modules * block.count)
        )
        return list(platform_ports(self.platform, cages)) if self.platform else []


class Node(Model):
    """One switch."""

    name: Name
    """The name of the node."""
    type: TypeName
    """The node's type."""
    vertex: Annotated[Whole, Field(ge=0)] | None = None
    """The node's vertex. Default: a free vertex. Without racks, vertices are taken in the order of
    the list."""
    datapath_id: DatapathId | None = None
    """The OpenFlow datapath id."""
    management: Management | None = None
    """The address of the management interface."""
    hosts: tuple[Host, ...] = ()
    """The hosts at the node."""
    host_count: HostCount | None = None
    """The number of hosts, instead of that of the type."""
    rack: Name | None = None
    """The rack."""
    unit: Annotated[Whole, Field(ge=1, le=1000)] | None = None
    """The lowest rack unit that the node fills, from 1 at the bottom."""
    serial: Line | None = None
    """The serial number."""
    guid: Guid | None = None
    """The GUID of an InfiniBand switch."""
    state: Literal["installed", "planned"] = "installed"
    """Whether the node is installed. A planned node is missing, but keeps its vertex."""
    disabled_ports: tuple[Line, ...] = ()
    """Ports whose links and hosts don't work."""
    plane: Annotated[Whole, Field(ge=1, le=16)] | None = None
    """The plane, from 1. Vertices are distinguished by plane."""
    group: Name | None = None
    """The group whose variables the node has."""
    asn: AsNumber | None = None
    """The AS number where switches speak BGP."""
    system: Name | None = None
    """The system of the node. Default: that of its type, else that of fabric.yaml."""
    vars: Vars = Field(default_factory=dict)
    """Variables for templates, which precede those of the group."""

    def host_places(self, count: int) -> list[int]:
        """The places, from 0, of the node's hosts: first of listed hosts, then those after them."""
        listed = [h for h, host in enumerate(self.hosts) if not host.absent]
        return [*listed, *range(len(self.hosts), len(self.hosts) + count - len(listed))][:count]


Nodes = Sequence[tuple[int, Node]]
"""Well-formed nodes of an inventory, each with its index in the list of all nodes."""


class Inventory(Model):
    """The hardware that a fabric is built from."""

    node_types: Annotated[
        dict[Name, NodeType],
        Field(min_length=1, default_factory=dict, json_schema_extra=NAMED),
    ]
    """The node types. A type that is missing here is looked up in the library
    (`inventory.library`).
    """
    nodes: Annotated[tuple[Node, ...], Field(min_length=1)] = ()
    """The nodes."""
    generate: Generate | None = None
    """Nodes for a whole fabric, instead of `nodes`."""
    racks: tuple[Rack, ...] = ()
    """The racks."""
    placement: Placement = Placement.model_construct()
    """The placement of nodes in racks."""
    cabling: Cabling = Cabling.model_construct()
    """The lengths and types of cables."""
    panels: Panels | None = None
    """The cassettes that links run through."""
    cables: tuple[Cable, ...] = ()
    """Links with fixed ports."""
    dead_links: tuple[DeadLink, ...] = ()
    """Links that are known to be dead."""
    shared_risks: tuple[SharedRisk, ...] = ()
    """Links and nodes that fail together."""
    groups: dict[Name, Vars] = Field(default_factory=dict, json_schema_extra=NAMED)
    """The variables of the nodes of a group, by its name. `host_count` among them is the number of
    hosts of its nodes.
    """
    hosts: HostFile = ()
    """All hosts with their switches, from a CSV file."""
    host_names: HostPattern | None = None
    """The names of hosts without one: a pattern with the fields {node}, {vertex}, {rack}, {host}
    and {number}.
    """

    def host_count(self, node: Node, default: int) -> int:
        """The number of hosts of a node: of itself, its group or its type, or else `default`."""
        count: int | None = node.host_count
        if count is None and node.group:
            count = self.groups.get(node.group, {}).get("host_count")
        if count is None and node.type in self.node_types:
            count = self.node_types[node.type].host_count
        return default if count is None else count
