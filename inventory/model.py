"""Hardware as values: node types with ports, and nodes of those types."""

from __future__ import annotations

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
    Management,
    Model,
    Name,
    Place,
    PortName,
    SystemPortName,
    TypeName,
    Vars,
    Whole,
)

Limit = Annotated[Whole, Field(ge=0)]
Priority = Annotated[Whole, Field(ge=1, le=5)]
HostCount = Annotated[Whole, Field(ge=0, le=1024)]
PortRole = Literal["any", "fabric", "host", "reserved"]
Capability = Literal[
    "openflow", "ipv6", "weights", "ingress", "repair", "aggregates", "srv6", "infiniband"
]


class PortBlock(Model):
    """A run of alike ports: `modules` (optical modules, line cards) of `count` cages.

    A cage is one port, or `breakout` of them. In `name` and `label`, {} is the number (first,
    first + step, …: within the module where the name has {module}, else running on), {module} the
    module's number from `first_module`, {lane} the part of a cage from `first_lane`; without {lane}
    the parts are numbered like ports. `speed` is in Gb/s, `lanes` those of one port.

    `names` has, by target, what that system calls the ports, and goes before that of the type.
    `mtu` is the largest IP packet of a port in bytes, `fec` its forward error correction.

    A port with `parallel` cables has as many sockets, called by `member` as parts are by `name`; it
    is one port to the operating system, such as a bond.

    Port numbers (OpenFlow, 1 first) run on over the blocks of a type in their order.
    """

    name: PortName = "eth{}"
    count: Annotated[Whole, Field(ge=1, le=65_000)]
    first: Annotated[Whole, Field(ge=0, le=1_000_000)] = 1
    role: PortRole = "any"
    step: Annotated[Whole, Field(ge=1, le=1000)] = 1
    modules: Annotated[Whole, Field(ge=1, le=1000)] = 1
    first_module: Annotated[Whole, Field(ge=0, le=10_000)] = 0
    breakout: Annotated[Whole, Field(ge=1, le=16)] = 1
    first_lane: Annotated[Whole, Field(ge=0, le=16)] = 0
    speed: Annotated[Whole, Field(ge=1, le=100_000)] | None = None
    lanes: Annotated[Whole, Field(ge=1, le=64)] | None = None
    connector: Line | None = None
    label: PortName | None = None
    names: dict[Name, SystemPortName] = Field(default_factory=dict, json_schema_extra=NAMED)
    fec: Literal["rs", "fc", "off"] | None = None
    mtu: Annotated[Whole, Field(ge=1280, le=65_535)] | None = None
    parallel: Annotated[Whole, Field(ge=1, le=16)] = 1
    member: PortName | None = None

    @property
    def total(self) -> int:
        """How many ports the block has in all."""
        return self.modules * self.count * self.breakout

    def port_names(self) -> list[str]:
        """The name of each port of the block, module by module."""
        return self._filled(self.name)

    def labels(self) -> list[str]:
        """What is printed next to each port; its name where nothing else is said."""
        return self._filled(self.label or self.name)

    def sockets(self) -> list[tuple[str, ...]]:
        """The names of each port's sockets: its own where it has one."""
        if self.parallel == 1:
            return [(name,) for name in self.port_names()]
        names = self._filled(self.member or f"{self.name}.{{lane}}", self.parallel)
        return list(zip(*[iter(names)] * self.parallel, strict=True))

    def _filled(self, pattern: str, parts: int = 0) -> list[str]:
        parts = parts or self.breakout
        per_number = parts if "{lane}" not in pattern else 1
        restarts = "{module}" in pattern
        filled = []
        for m in range(self.modules):
            text = pattern.replace("{module}", str(self.first_module + m))
            for c in range(self.count):
                cage = (c if restarts else m * self.count + c) * per_number
                for lane in range(parts):
                    number = self.first + self.step * (cage + (lane if per_number > 1 else 0))
                    part = str(self.first_lane + lane)
                    filled.append(text.replace("{}", str(number)).replace("{lane}", part))
        return filled


class TableLimits(Model):
    """Table limits of a switch; a missing limit is not checked."""

    lpm_rows: Limit | None = None
    groups: Limit | None = None
    ecmp_width: Limit | None = None


class PacketBuffer(Model):
    """Packet memory of a switch, and what lossless priorities use (docs/concepts/channels.md).

    `priorities` are the PFC priorities that it can make lossless, the first channel's first; 0, 6
    and 7 are of others. `size` is its packet memory in bytes, `cell` the unit in which it is given
    out. `cable` is the longest cable at any port in metres, `reaction` the nanoseconds from a pause
    to the last byte behind it, without the cable: both ends' pipelines and the neighbour's
    response. From `ecn_min` bytes in a queue on packets are marked, from `ecn_max` on `ecn_percent`
    of them.
    """

    priorities: Annotated[tuple[Priority, ...], Field(min_length=1, max_length=3)]
    size: Annotated[Whole, Field(ge=1, le=1 << 40)]
    cell: Annotated[Whole, Field(ge=1, le=65_536)]
    cable: Annotated[Whole, Field(ge=1, le=100_000)]
    reaction: Annotated[Whole, Field(ge=1, le=1_000_000)]
    ecn_min: Annotated[Whole, Field(ge=1, le=1 << 40)]
    ecn_max: Annotated[Whole, Field(ge=1, le=1 << 40)]
    ecn_percent: Annotated[Whole, Field(ge=1, le=100)]


class OpenFlowKeys(Model):
    """What a switch can do of OpenFlow 1.3: a profile, and where it differs from that.

    `bundles` are those of ONF extension 230, `experimenters` the moves and fields of Open vSwitch,
    `masks` matches on some bits of metadata, `select_liveness` that select groups pass dead ports
    over, `buckets` the most of a group.
    """

    profile: Literal["openflow13-ovs", "openflow13", "single-table", "few-buckets"] = (
        "openflow13-ovs"
    )
    bundles: bool | None = None
    experimenters: bool | None = None
    masks: bool | None = None
    fast_failover: bool | None = None
    select_liveness: bool | None = None
    buckets: Annotated[Whole, Field(ge=1, le=65_535)] | None = None
    tables: Annotated[Whole, Field(ge=1, le=255)] | None = None


class NodeType(Model):
    """A kind of switch: its ports, its height in rack units, what it holds and can do.

    `names` has, by target, what that system calls the ports; in it {cage} and {port} number the
    cages and ports of the type, {lane} the parts of a cage, all as the system counts, {module} is
    as in `PortBlock`, {serdes} numbers the first lane of a port, of all lanes of the type, and
    {port*8} is eight times the number. platform: SONiC's platform.json or port_config.ini, which
    has names and lanes of the ports.

    shuffle: of a box whose fibres are shuffled inside, a text for each connector on its face plate,
    with the port behind each lane; `-` is dark. Connectors are X1, X2, …, and lane 2 of X3 is X3.2.

    A node of the type has `host_count` hosts; without it as many as fabric.yaml gives every node.

    Without `capabilities` nothing is known of them, and nothing is checked.
    """

    ports: Annotated[tuple[PortBlock, ...], Field(min_length=1)]
    names: dict[Name, SystemPortName] = Field(default_factory=dict, json_schema_extra=NAMED)
    platform: PlatformFile = ()
    shuffle: tuple[Place, ...] = ()
    units: Annotated[Whole, Field(ge=1, le=100)] = 1
    host_count: HostCount | None = None
    tables: TableLimits = TableLimits.model_construct()
    openflow: OpenFlowKeys | None = None
    buffer: PacketBuffer | None = None
    capabilities: tuple[Capability, ...] | None = None
    manufacturer: Line | None = None
    model: Line | None = None
    part_number: Line | None = None

    def plugs(self) -> dict[str, tuple[int, int]]:
        """The connector and lane, from 1, of each port behind the shuffle inside, in order."""
        return {
            port: (connector, lane)
            for connector, text in enumerate(self.shuffle, 1)
            for lane, port in enumerate(text.split(), 1)
            if port != "-"
        }

    def labels(self) -> list[str]:
        """What is on the face plate for each port: its label, or its connector and lane."""
        at = {port: f"X{connector}.{lane}" for port, (connector, lane) in self.plugs().items()}
        ports = (zip(b.port_names(), b.labels(), strict=True) for b in self.ports)
        return [at.get(name, label) for each in ports for name, label in each]

    def platform_ports(self) -> list[PlatformPort]:
        """Its ports as SONiC's file has them; none without such a file.

        Raises:
            ValueError: (required, given): the file is that of another switch.
        """
        cages = (
            Cage(block.breakout, block.speed or 0, block.lanes or 0)
            for block in self.ports
            for _ in range(block.modules * block.count)
        )
        return list(platform_ports(self.platform, cages)) if self.platform else []


class Node(Model):
    """One switch. Without `vertex`, nodes take the free vertices in the order they are listed.

    unit is the lowest rack unit that it fills, from 1 at the bottom. A planned node is not there
    yet, but keeps its vertex; links and hosts at disabled ports don't work. plane: 1 without it;
    vertices are distinguished by plane. host_count: how many hosts it has, instead of the number of
    its type. asn: its AS number where switches speak BGP. vars: the user's
    own, before those of its group.
    """

    name: Name
    type: TypeName
    vertex: Annotated[Whole, Field(ge=0)] | None = None
    datapath_id: DatapathId | None = None
    management: Management | None = None
    hosts: tuple[Host, ...] = ()
    host_count: HostCount | None = None
    rack: Name | None = None
    unit: Annotated[Whole, Field(ge=1, le=1000)] | None = None
    serial: Line | None = None
    guid: Guid | None = None
    state: Literal["installed", "planned"] = "installed"
    disabled_ports: tuple[Line, ...] = ()
    plane: Annotated[Whole, Field(ge=1, le=16)] | None = None
    group: Name | None = None
    asn: AsNumber | None = None
    vars: Vars = Field(default_factory=dict)

    def host_places(self, count: int) -> list[int]:
        """The places, from 0, of its `count` hosts: first of those that are listed."""
        known = [h for h, host in enumerate(self.hosts) if not host.absent]
        return [*known, *range(len(self.hosts), len(self.hosts) + count - len(known))][:count]


class Inventory(Model):
    """The hardware that a fabric is built from: `nodes`, or `generate` in their place.

    A type that `node_types` lacks is looked for in the library (`inventory.library`). groups: the
    variables of the nodes of a group, by its name; `host_count` among them is that of its nodes.
    hosts: all hosts with their switches, from a CSV file. host_names: the names of hosts without
    one, a pattern with the fields {node}, {vertex}, {rack}, {host} and {number}. installed: the
    cables of the build before are plugged, and stay.
    """

    node_types: Annotated[
        dict[Name, NodeType],
        Field(min_length=1, default_factory=dict, json_schema_extra=NAMED),
    ]
    nodes: Annotated[tuple[Node, ...], Field(min_length=1)] = ()
    generate: Generate | None = None
    racks: tuple[Rack, ...] = ()
    placement: Placement = Placement.model_construct()
    cabling: Cabling = Cabling.model_construct()
    panels: Panels | None = None
    cables: tuple[Cable, ...] = ()
    dead_links: tuple[DeadLink, ...] = ()
    shared_risks: tuple[SharedRisk, ...] = ()
    groups: dict[Name, Vars] = Field(default_factory=dict, json_schema_extra=NAMED)
    hosts: HostFile = ()
    host_names: HostPattern | None = None
    installed: bool = False

    def host_count(self, node: Node, usual: int) -> int:
        """The number of hosts of a node: its own, that of its group, of its type, the usual one."""
        given: int | None = node.host_count
        if given is None and node.group:
            given = self.groups.get(node.group, {}).get("host_count")
        if given is None and node.type in self.node_types:
            given = self.node_types[node.type].host_count
        return usual if given is None else given
