"""Scenario files: their keys as pydantic models, and `load_scenario`, which reads and checks them.

A scenario has a fabric, an engine, traffic, a timeline and expectations. A *moment* is an entry of
its timeline. The verb `emulate` and the library load scenarios here, and `run.emulation` carries
them out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from compilers.choices import EngineName, FrameworkName
from compilers.evaluation.pattern_traffic import RATES_SUFFIX
from compilers.spec.fabric_file import LoadedFabric, load_fabric
from compilers.spec.fabric_spec import FabricSpec, RoutingSpec
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load as load_build
from compilers.tables.folders.build_folder import plane_folders
from compilers.tables.folders.folder_contents import is_build
from inventory.document_errors import validate
from inventory.json_schema import schema_of
from inventory.problems import InputError, Problem, did_you_mean
from inventory.values import Line, LongLine, Model, Name, Whole, refusal
from inventory.yamlfile import STDIN, Document, Unreadable, read

NAMED_PATTERNS = (
    "uniform",
    "tornado",
    "permutation",
    "perm1hop",
    "perm2hop",
    "shuffle",
    "reverse",
    "adversarial",
)
"""The patterns of `polarfab throughput` that flows between hosts can have."""
RulesExpected = Literal["none", "reachable", "all"]
"""The rules that packets must reach: none, those reachable while all ports are up, or all."""
DECIMAL = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")
"""A number without sign or exponent, such as `0.05`."""


def _parse_number(value: Any) -> Any:
    """A number, from a number or its text."""
    text = str(value) if type(value) in (int, float) else value
    if not isinstance(text, str) or not DECIMAL.fullmatch(text):
        raise refusal("a number such as 2 or 0.5")
    return float(text)


def _parse_pattern(value: Any) -> Any:
    """A pattern, from its name or from the name of a file of rates."""
    if value in NAMED_PATTERNS or (isinstance(value, str) and value.endswith(RATES_SUFFIX)):
        return value
    todo = did_you_mean(str(value), NAMED_PATTERNS)
    raise refusal(f"one of {', '.join(NAMED_PATTERNS)}, or a CSV file of rates", todo)


def _parse_links(value: Any) -> Any:
    """Links as texts, from one link or a list."""
    items = value if isinstance(value, list | tuple) else (value,)
    return tuple(str(item) if type(item) is int else item for item in items)


def _parse_pair(value: Any) -> Any:
    """Two links, from a list of two."""
    links = _parse_links(value)
    if not isinstance(value, list | tuple) or len(links) != 2:
        raise refusal("a list of two links, such as [0-4, 1-5]")
    return links


Number = Annotated[
    float, BeforeValidator(_parse_number), WithJsonSchema({"type": "number", "minimum": 0})
]
"""A number of 0 or more."""
Pattern = Annotated[
    str,
    BeforeValidator(_parse_pattern),
    WithJsonSchema(
        {"anyOf": [{"enum": list(NAMED_PATTERNS)}, {"type": "string", "pattern": r"\.csv$"}]}
    ),
]
"""The name of a pattern, or of a CSV file of rates."""
Elements = Annotated[
    tuple[Line, ...],
    BeforeValidator(_parse_links),
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
"""Links or nodes, one or a list."""
Pair = Annotated[tuple[Line, ...], BeforeValidator(_parse_pair), Field(min_length=2, max_length=2)]
"""Two links."""
Count = Annotated[Whole, Field(ge=0, le=1_000_000_000)]
"""A number of packets or pairs."""
PlaneNumber = Annotated[Whole, Field(ge=1, le=16)]
"""A plane of the fabric, from 1."""
Seed = Annotated[Whole, Field(ge=0)]
"""The seed of random numbers."""


class Expect(Model):
    """Expectations. A missing one is derived from the build."""

    delivered: Count | None = None
    """The ordered pairs of hosts that reach each other. Default: those that the tables deliver."""
    max_hops: Annotated[Whole, Field(ge=0, le=64)] | None = None
    """The most links of a path. Default, before anything happens: the graph's diameter, or if pairs
    have several paths, the links of the longest one in the tables.
    """
    minimal: bool | None = None
    """Whether every path is a shortest one. Default, before anything happens, with minimal routing:
    true.
    """
    paths: tuple[Annotated[tuple[Line, ...], BeforeValidator(_parse_links)], ...] = ()
    """The nodes that a packet from the first to the last of them passes."""


class ExpectAtTop(Expect):
    """Expectations of the whole scenario."""

    throughput: Number | None = None
    """The part that must arrive of what all flows offer. Default: 0.85 of what max-min fairness
    gives, with TCP 0.75.
    """
    rules: RulesExpected | None = None
    """The rules of the OpenFlow program that packets must reach, before anything happens and after
    a move. Default: `reachable` in small fabrics, else `none`.
    """


class ExpectInMoment(Expect):
    """Expectations of the probe from an event on."""

    lost: Count | None = None
    """The most packets that may go missing of a pair that the tables deliver."""
    converged_within: Number | None = None
    """Seconds after the event from which no packet may go missing. Default: 1."""


class Probe(Model):
    """Numbered packets at a constant rate while the timeline runs, one way, over some pairs."""

    interval: Annotated[Number, Field(ge=0.001, le=10)] = 0.05
    """Seconds between two packets of a pair."""
    pairs: Annotated[Whole, Field(ge=0, le=100_000)] = 64
    """How many pairs, drawn by chance; 0 for all."""
    seed: Seed = 1
    """The seed of the draw."""


class FlowSpec(Model):
    """Flows between hosts, by a pattern of `polarfab throughput`, each host of a switch its own."""

    pattern: Pattern
    """The pattern of `polarfab throughput`, or a CSV file of rates."""
    rate: Annotated[Number, Field(gt=0)] | None = None
    """Mb/s that each host offers. Default: the rate of a link."""
    protocol: Literal["udp", "tcp"] = "udp"
    """The transport protocol."""
    parallel: Annotated[Whole, Field(ge=1, le=32)] = 1
    """TCP connections that a flow is divided into, for switches that choose a path per connection.
    """
    seconds: Annotated[Number, Field(ge=1, le=600)] = 4.0
    """How long the flows last."""
    seed: Seed = 0
    """The seed of patterns that are drawn by chance."""


class TrafficSpec(Model):
    """Traffic besides the pings."""

    probe: Probe | None = None
    """A probe while the timeline runs."""
    flows: FlowSpec | None = None
    """Flows between hosts."""
    link_rate: Annotated[Number, Field(ge=0.1, le=100_000)] | None = None
    """Mb/s of every link between switches. Default: no limit."""


class TimelineEntry(Model):
    """One event of a timeline, and what is expected from then on.

    Exactly one of the keys up to `expand` says what happens.
    """

    link_down: Elements | None = None
    """Links A-B that are cut."""
    link_up: Elements | None = None
    """Links A-B that are mended."""
    node_down: Elements | None = None
    """Nodes that lose power."""
    node_up: Elements | None = None
    """Nodes that have power again."""
    rack_down: Name | None = None
    """A rack of the fabric's layout: all its nodes lose power."""
    rack_up: Name | None = None
    """A rack of the fabric's layout: all its nodes have power again."""
    group_down: Line | None = None
    """What shares a risk is cut, such as module:N/M, trunk:C0-C1 or risk:NAME of the inventory."""
    group_up: Line | None = None
    """What shares a risk is mended."""
    plane_down: PlaneNumber | None = None
    """All nodes of one of several planes, from 1, lose power."""
    plane_up: PlaneNumber | None = None
    """All nodes of one of several planes, from 1, have power again."""
    miswire: Pair | None = None
    """Two links A-B and C-D whose cables are swapped at B and D."""
    rewire: Pair | None = None
    """Two links whose swapped cables are put right."""
    controller: Literal["killed", "started"] | None = None
    """The controller is killed or started."""
    each: Literal["link", "node", "module", "cage", "rack", "trunk", "risk"] | None = None
    """Every link, node or group of a kind fails and comes back, one after the other."""
    build: LongLine | None = None
    """A build that the fabric moves to."""
    policy: RoutingSpec | None = None
    """The fabric moves to the same fabric with this routing."""
    expand: Annotated[str, Field(pattern=r"^[a-z]+(:[0-9]{1,4})?$")] | None = None
    """The fabric moves to the expanded fabric."""
    in_round: Annotated[Whole, Field(ge=1, le=64)] | None = None
    """The round of the move at whose beginning the controller is killed."""
    sample: Annotated[Whole, Field(ge=1, le=100_000)] | None = None
    """How many of `each` fail, drawn by chance. Default: all."""
    seed: Seed = 1
    """The seed of the draw."""
    at: Number | None = None
    """Seconds after the timeline began. Without it the event waits until the fabric has dealt with
    the one before.
    """
    expect: ExpectInMoment = ExpectInMoment.model_construct()
    """What is expected from the event on."""

    def happens(self) -> list[str]:
        """The names of the given events."""
        return [word for word in HAPPENS if getattr(self, word) is not None]


_ENTRY_KEYS = list(TimelineEntry.model_fields)
"""The keys of a moment, in the order of the class."""
HAPPENS = tuple(_ENTRY_KEYS[: _ENTRY_KEYS.index("in_round")])
"""The keys of a moment that name an event: all before `in_round`."""
MOVES = ("build", "policy", "expand")
"""The keys of a moment that move the fabric to another build."""


class Scenario(Model):
    """One rehearsal of the fabric that `InlineScenario` or `ReferringScenario` names."""

    name: Name
    """The name of the scenario."""
    engine: EngineName = "auto"
    """What carries the packets."""
    framework: FrameworkName | None = None
    """The controller's framework. Default: the first that is installed."""
    hosts: Annotated[Whole, Field(ge=1, le=1024)] | None = None
    """How many of each switch's hosts take part. Default: all."""
    traffic: TrafficSpec = TrafficSpec.model_construct()
    """Traffic besides the pings."""
    timeline: tuple[TimelineEntry, ...] = ()
    """The events, in order."""
    expect: ExpectAtTop = ExpectAtTop.model_construct()
    """What is expected of the whole scenario."""
    repair: bool = True
    """Whether the controller routes around failures, as it does in a fabric that it runs. False:
    only the tables that switches hold do.
    """
    prove_checker: bool = True
    """Whether a wrong table is put in place at first, to see that the checks find it."""
    patience: Annotated[Whole, Field(ge=1, le=3600)] = 60
    """Seconds until every switch must have its program, and until it has dealt with an event."""


SHIPPED = Path(__file__).parents[1] / "library"
"""The folder of the scenarios that come with polarfab."""


class InlineScenario(Scenario):
    """A scenario that contains its fabric."""

    fabric: FabricSpec
    """The fabric, with the keys of fabric.yaml."""


class ReferringScenario(Scenario):
    """A scenario that names its fabric."""

    fabric: str
    """A fabric.yaml or a build folder; its path is relative to the scenario's."""


class ScenarioFile(Scenario):
    """A scenario: what `polarfab emulate` brings up, does to it, and expects of it."""

    fabric: FabricSpec | str
    """The fabric, with the keys of fabric.yaml; or the path of a fabric.yaml or a build folder."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedScenario:
    """A scenario and what it rehearses: a build folder, or else a fabric still to compile."""

    scenario: Scenario
    """The scenario."""
    folder: Path | None = None
    """The build folder; None for a fabric still to compile."""
    fabric: LoadedFabric | None = None
    """The fabric still to compile; None for a build folder."""
    document: Document | None = field(default=None, repr=False)
    """The scenario's file, for messages about it; None without one."""
    others: tuple[Build, ...] = field(default=(), repr=False)
    """The other planes, if the scenario is run on one plane of several. Events of these planes are
    left out."""


def schema() -> dict[str, Any]:
    """The JSON schema of a scenario file, for an editor's completion."""
    return schema_of(ScenarioFile)


def shipped() -> dict[str, Path]:
    """The scenarios that come with polarfab, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}


def load_scenario(place: str) -> LoadedScenario:
    """The scenario that a user names.

    A build folder is a scenario with the defaults. So is a file with the keys of fabric.yaml, with
    `topology` on top.

    Args:
        place: the name of a shipped scenario, a file (`-`: stdin), or a build folder.

    Raises:
        InputError: there is no such scenario, or it or its fabric has mistakes; all of them.
    """
    if is_build(Path(place)):
        return LoadedScenario(Scenario(name=_name(Path(place))), folder=Path(place))
    if "/" not in place and not place.endswith((".yaml", ".yml")) and place != STDIN:
        place = str(_shipped(place))
    document = read(place)
    if isinstance(document.data.get("fabric"), str):
        return _load_referring(document, place)
    if "topology" in document.data and "fabric" not in document.data:
        loaded = load_fabric(place, document)
        return LoadedScenario(Scenario(name=loaded.spec.name), fabric=loaded)
    inline = validate(InlineScenario, document)
    _require_consistent(inline, document)
    loaded = load_fabric(place, replace(document, data=document.data["fabric"]))
    return LoadedScenario(_with_rates_path(inline, place), fabric=loaded, document=document)


def _load_referring(document: Document, place: str) -> LoadedScenario:
    """The scenario of a file that names its fabric.

    Raises:
        InputError: the scenario or its fabric has mistakes; all of them.
    """
    referring = validate(ReferringScenario, document)
    _require_consistent(referring, document)
    scenario = _with_rates_path(referring, place)
    path = Path(referring.fabric)
    if place != STDIN:
        path = Path(place).parent / path
    if is_build(path):
        return LoadedScenario(scenario, folder=path, document=document)
    try:
        return LoadedScenario(scenario, fabric=load_fabric(path), document=document)
    except Unreadable as error:
        raise document.unreadable(("fabric",), error) from None


def _with_rates_path(scenario: Scenario, file: str) -> Scenario:
    """A scenario whose file of rates is named relative to the scenario's own file."""
    flows = scenario.traffic.flows
    if flows is None or not flows.pattern.endswith(RATES_SUFFIX) or file == STDIN:
        return scenario
    flows = flows.model_copy(update={"pattern": str(Path(file).parent / flows.pattern)})
    traffic = scenario.traffic.model_copy(update={"flows": flows})
    return scenario.model_copy(update={"traffic": traffic})


def _name(folder: Path) -> str:
    """The name of the fabric in a build folder, without that of a plane."""
    first, *more = plane_folders(folder)
    name = load_build(first).name
    return name.removesuffix("-p1") if more else name


def _require_consistent(scenario: Scenario, document: Document) -> None:
    """Require that the keys of a scenario fit each other.

    Each moment has one event, times rise, and a probe or flows measure what is expected.

    Raises:
        InputError: one problem for each mistake.
    """
    problems = []
    if scenario.expect.throughput is not None and scenario.traffic.flows is None:
        required, todo = "traffic with flows", "add `traffic: {flows: {pattern: uniform}}`"
        problems.append(document.problem(("expect", "throughput"), required, "none", todo))
    last_time = 0.0
    for number, moment in enumerate(scenario.timeline):
        problems += _moment_problems(scenario, number, document)
        if moment.at is not None:
            if moment.at < last_time:
                path = ("timeline", number, "at")
                earlier = f"{moment.at:g} after {last_time:g}"
                problems.append(document.problem(path, "times that rise", earlier))
            last_time = moment.at
    if problems:
        raise InputError(problems)


def _moment_problems(scenario: Scenario, number: int, document: Document) -> list[Problem]:
    """The mistakes of one moment, by its number."""
    problems = []
    moment, path = scenario.timeline[number], ("timeline", number)
    events = moment.happens()
    if len(events) != 1:
        problems.append(
            document.problem(
                path,
                f"one of {', '.join(HAPPENS)}",
                " and ".join(events) or "none of them",
                "one moment, one event" if events else "add one",
            )
        )
    if moment.in_round is not None and not _kills_in_move(scenario, number):
        required = "controller: killed, in the moment after one with build, policy or expand"
        problems.append(document.problem((*path, "in_round"), required, "another moment"))
    if scenario.traffic.probe is None:
        for key in ("lost", "converged_within"):
            if getattr(moment.expect, key) is not None:
                required, todo = "traffic with a probe", "add `traffic: {probe: {}}`"
                problems.append(document.problem((*path, "expect", key), required, "none", todo))
    return problems


def _kills_in_move(scenario: Scenario, number: int) -> bool:
    """Whether a moment kills the controller while the moment before it moves the fabric."""
    moment, before = scenario.timeline[number], scenario.timeline[max(0, number - 1)]
    return moment.controller == "killed" and bool({*MOVES} & {*before.happens()})


def _shipped(name: str) -> Path:
    """The file of a scenario that is shipped with polarfab.

    Raises:
        InputError: there is none of this name.
    """
    scenarios = shipped()
    if name not in scenarios:
        required = "a scenario file, a build or the name of a scenario"
        todo = did_you_mean(name, scenarios, "polarfab emulate has the names")
        if Path(name).is_dir():
            todo = "name a file in it; polarfab emulate lists the scenarios that are there"
        raise InputError.of(required, name, todo, key="SCENARIO")
    return scenarios[name]
