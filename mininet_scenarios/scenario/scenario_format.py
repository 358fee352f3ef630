"""The format of a scenario file besides the fabric: traffic, a timeline, expectations."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from compilers.choices import EngineName, FrameworkName
from compilers.spec.fabric_spec import RoutingSpec
from inventory.values import Line, Model, Name, Place, Whole, refusal

Pattern = Literal[
    "uniform", "tornado", "permutation", "perm1hop", "perm2hop", "shuffle", "reverse", "adversarial"
]
RulesExpected = Literal["none", "reachable", "all"]
"""Rules that packets must reach: none, those that they can while all ports are up, or every one."""
DECIMAL = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


def _number(value: Any) -> Any:
    text = str(value) if type(value) in (int, float) else value
    if not isinstance(text, str) or not DECIMAL.fullmatch(text):
        raise refusal("a number such as 2 or 0.5")
    return float(text)


def _links(value: Any) -> Any:
    items = value if isinstance(value, list | tuple) else (value,)
    return tuple(str(item) if type(item) is int else item for item in items)


def _pair(value: Any) -> Any:
    links = _links(value)
    if not isinstance(value, list | tuple) or len(links) != 2:
        raise refusal("a list of two links, such as [0-4, 1-5]")
    return links


Number = Annotated[
    float, BeforeValidator(_number), WithJsonSchema({"type": "number", "minimum": 0})
]
Elements = Annotated[
    tuple[Line, ...],
    BeforeValidator(_links),
    Field(min_length=1),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": ["string", "integer"]},
                {"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 1},
            ]
        }
    ),
]
Pair = Annotated[tuple[Line, ...], BeforeValidator(_pair), Field(min_length=2, max_length=2)]
Count = Annotated[Whole, Field(ge=0, le=1_000_000_000)]
PlaneNumber = Annotated[Whole, Field(ge=1, le=16)]
Seed = Annotated[Whole, Field(ge=0)]


class Expect(Model):
    """Expectations; a missing one is derived from the build.

    delivered: ordered pairs of hosts that reach each other (those that the tables deliver).
    max_hops: links on the longest path (before anything happens the graph's diameter). minimal:
    whether every path is a shortest one (with minimal routing, before anything happens). lost: of a
    pair that the tables deliver, the most probe packets that may go missing after the event.
    converged_within: seconds after the event from which none may (1). throughput: which part of
    what all flows offer must arrive (of what max-min fairness gives 0.85, with TCP 0.75). paths:
    nodes that a packet from the first to the last of them passes. rules: which of the OpenFlow
    program packets must reach, before anything happens and after a move (`reachable` in small
    fabrics, else none). shares: the most that a port's part of a select group's packets may be off
    (what chance allows).
    """

    delivered: Count | None = None
    max_hops: Annotated[Whole, Field(ge=0, le=64)] | None = None
    minimal: bool | None = None
    lost: Count | None = None
    converged_within: Number | None = None
    throughput: Number | None = None
    rules: RulesExpected | None = None
    shares: Annotated[Number, Field(ge=0.005, le=1)] | None = None
    paths: tuple[Annotated[tuple[Line, ...], BeforeValidator(_links)], ...] = ()


class Sample(Model):
    """Pairs that get 1, 2, 3, … requests each, so that a link's counter tells whose they were."""

    pairs: Annotated[Whole, Field(ge=0, le=200)] = 24
    seed: Seed = 1


class Probe(Model):
    """Numbered packets at a constant rate while the timeline runs, one way, over some pairs.

    interval: seconds between two packets of a pair. pairs: how many, by chance; 0 for all.
    """

    interval: Annotated[Number, Field(ge=0.001, le=10)] = 0.05
    pairs: Annotated[Whole, Field(ge=0, le=100_000)] = 64
    seed: Seed = 1


class FlowSpec(Model):
    """Flows between hosts, by a pattern of `polarfab throughput`, each host of a switch its own.

    rate: Mb/s that each host offers (the rate of a link). parallel: TCP connections that a flow is
    divided into, for switches that choose a way a connection. seconds: how long.
    """

    pattern: Pattern
    rate: Annotated[Number, Field(gt=0)] | None = None
    protocol: Literal["udp", "tcp"] = "udp"
    parallel: Annotated[Whole, Field(ge=1, le=32)] = 1
    seconds: Annotated[Number, Field(ge=1, le=600)] = 4.0
    seed: Seed = 0


class TrafficSpec(Model):
    """Traffic besides the pings. link_rate: Mb/s of every link between switches (no limit)."""

    probe: Probe | None = None
    flows: FlowSpec | None = None
    link_rate: Annotated[Number, Field(ge=0.1, le=100_000)] | None = None


class TimelineEntry(Model):
    """One event of a timeline, and what is expected from then on.

    Exactly one of: link_down, link_up (links A-B); node_down, node_up (nodes); rack_down, rack_up
    (racks of the fabric's layout: all their nodes); group_down, group_up (what shares a risk, such
    as module:N/M, trunk:C0-C1 or risk:NAME of the inventory); plane_down, plane_up (all nodes of
    one of several planes, from 1); miswire (two links A-B and C-D whose cables are swapped at B and
    D), rewire (the same two, put right); controller; each (every link, node or group of a kind
    fails and comes back, one after the other; a sample of so many by chance).

    at: seconds after the timeline began; without it the event waits until the fabric has dealt with
    the one before.
    """

    link_down: Elements | None = None
    link_up: Elements | None = None
    node_down: Elements | None = None
    node_up: Elements | None = None
    rack_down: Name | None = None
    rack_up: Name | None = None
    group_down: Line | None = None
    group_up: Line | None = None
    plane_down: PlaneNumber | None = None
    plane_up: PlaneNumber | None = None
    miswire: Pair | None = None
    rewire: Pair | None = None
    controller: Literal["killed", "started"] | None = None
    each: Literal["link", "node", "module", "cage", "rack", "trunk", "risk"] | None = None
    build: Place | None = None
    policy: RoutingSpec | None = None
    expand: Annotated[str, Field(pattern=r"^[a-z]+(:[0-9]{1,4})?$")] | None = None
    in_round: Annotated[Whole, Field(ge=1, le=64)] | None = None
    sample: Annotated[Whole, Field(ge=1, le=100_000)] | None = None
    seed: Seed = 1
    at: Number | None = None
    expect: Expect = Expect.model_construct()

    def happens(self) -> list[str]:
        """The names of the given events."""
        return [word for word in HAPPENS if getattr(self, word) is not None]


HAPPENS = tuple(TimelineEntry.model_fields)[: list(TimelineEntry.model_fields).index("in_round")]
"""The keys of a moment that name an event."""
MOVES = ("build", "policy", "expand")
"""Those of them that move the fabric to another build."""


class Scenario(Model):
    """One rehearsal, of a fabric that `InlineScenario` or `ReferringScenario` says.

    hosts: how many of each switch's hosts take part (all). patience: seconds until every switch
    must have its program, and until it has dealt with an event.
    """

    name: Name
    engine: EngineName = "auto"
    framework: FrameworkName | None = None
    hosts: Annotated[Whole, Field(ge=1, le=1024)] | None = None
    traffic: TrafficSpec = TrafficSpec.model_construct()
    timeline: tuple[TimelineEntry, ...] = ()
    expect: Expect = Expect.model_construct()
    sample: Sample = Sample.model_construct()
    prove_checker: bool = True
    patience: Annotated[Whole, Field(ge=1, le=3600)] = 60
