"""The shipped scenarios: each passes on the model, and each fails when its fault is real."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compilers.pipeline import compile_fabric
from inventory.problems import InputError
from mininet_scenarios.engines.engine_kinds import require
from mininet_scenarios.engines.model_engine import ModelEngine
from mininet_scenarios.run.rehearsal import carry_out
from mininet_scenarios.run.rehearsal_plan import Plan, PlannedBuild, plan
from mininet_scenarios.scenario.engine import Setup
from mininet_scenarios.scenario.outage import ControllerChange, Miswire, PhysicalChange
from mininet_scenarios.scenario.scenario_file import load_scenario, shipped
from mininet_scenarios.scenario.timeline_events import cases, needs


def rehearse(loaded, engine=ModelEngine, build=None):
    made = plan(loaded, unverified=True)
    if build:
        made = Plan(loaded.scenario, (PlannedBuild(build),), build)
    builds = tuple(planned.build for planned in made.builds)
    rate, hosts = loaded.scenario.traffic.link_rate, loaded.scenario.hosts
    setup = Setup(
        builds,
        (),
        Path(),
        builds.index(made.cabled),
        hosts,
        rate=rate,
        repair=loaded.scenario.repair,
    )
    return carry_out(made, engine(setup))


def failed(result):
    return {check.name: check for check in result.checks if not check.passed}


def without_protection(name):
    """The scenario with the same fabric, unprotected."""
    loaded = load_scenario(name)
    routing = loaded.fabric.spec.routing.model_copy(update={"protect": "none"})
    spec = loaded.fabric.spec.model_copy(update={"routing": routing})
    return replace(loaded, fabric=replace(loaded.fabric, spec=spec))


LARGE = {"fabric-q16", "fabric-q31"}
"""Scenarios that are run on real switches only (`test_engines_live`)."""


@pytest.mark.parametrize("name", sorted({*shipped()} - LARGE))
def test_every_shipped_scenario_passes_on_the_model(name):
    """Of each of the 224 links of q = 7, two."""
    loaded = load_scenario(name)
    if name == "link-failures-q7":
        killed, links = loaded.scenario.timeline
        timeline = (killed, links.model_copy(update={"sample": 2}))
        scenario = loaded.scenario.model_copy(update={"timeline": timeline})
        loaded = replace(loaded, scenario=scenario)
    result = rehearse(loaded)
    assert not failed(result)
    assert result.wrong_table_found
    assert len(result.events) >= len(loaded.scenario.timeline)


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("link-failures-q3", "each link down, 24: delivered"),
        ("quadric-link-q3", "link 7-12 down: delivered"),
        ("node-failure-q3", "node 4 down: delivered"),
    ],
)
def test_tables_without_protection_fail(name, check):
    wrong = failed(rehearse(without_protection(name)))
    assert check in wrong
    assert "seen lost (" in str(wrong[check].mismatches[0])


def skipping(*kinds):
    """An engine on which such an event never happens."""

    class Skips(ModelEngine):
        def apply(self, event):
            if not any(kind(event) for kind in kinds):
                super().apply(event)

    return Skips


@pytest.mark.parametrize(
    ("name", "event", "check"),
    [
        (
            "quadric-link-q3",
            lambda e: isinstance(e, PhysicalChange) and e.up,
            "link 7-12 up: hops as predicted",
        ),
        (
            "node-failure-q3",
            lambda e: isinstance(e, PhysicalChange) and e.up,
            "node 4 up: delivered",
        ),
        (
            "rack-failure-q3",
            lambda e: isinstance(e, PhysicalChange) and e.up,
            "rack fan1 up: delivered",
        ),
        (
            "miswire-q3",
            lambda e: isinstance(e, Miswire) and e.repaired,
            "cables 9-10 and 7-12 corrected: delivered",
        ),
    ],
)
def test_a_skipped_repair_fails(name, event, check):
    wrong = failed(rehearse(load_scenario(name), skipping(event)))
    assert check in wrong


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("link-failures-q3", "each link down, 24: hops as predicted"),
        ("miswire-q3", "cables 9-10 and 7-12 swapped: arrived"),
    ],
)
def test_a_fault_that_does_not_happen_fails(name, check):
    """Who expects a fault and sees none is not looking at that fabric."""
    engine = skipping(lambda e: not isinstance(e, ControllerChange))
    assert check in failed(rehearse(load_scenario(name), engine))


def test_one_lost_packet_fails_and_is_named():
    class Loses(ModelEngine):
        """Of the third pair, the last packet of the probe."""

        def probe_stop(self):
            probed = super().probe_stop()
            received = probed.received.copy()
            received[np.flatnonzero(probed.pair == 2)[-1]] = np.nan
            return replace(probed, received=received)

    loaded = load_scenario("quadric-link-q3")
    assert not failed(rehearse(loaded))
    events = tuple(
        moment.model_copy(
            update={"expect": moment.expect.model_copy(update={"converged_within": 0.0})}
        )
        for moment in loaded.scenario.timeline
    )
    strict = loaded.scenario.model_copy(update={"timeline": events})
    result = rehearse(replace(loaded, scenario=strict), Loses)
    wrong = failed(result)
    assert list(wrong) == ["probe, link 7-12 up: nothing lost after 0 s"]
    told = wrong["probe, link 7-12 up: nothing lost after 0 s"].mismatches
    assert [str(m) for m in told] == ["h0 → h3: expected no packet lost, seen 1 lost"]
    assert [event.lost for event in result.events] == [0, 0, 1]
    assert result.probe_history.received.sum() == result.probe_history.sent.sum() - 1


def test_more_lost_packets_than_allowed_fail():
    """Without protection every packet over the dead link is lost, and here that must not be."""
    loaded = without_protection("quadric-link-q3")
    wrong = failed(rehearse(loaded))
    assert "link 7-12 down: delivered" in wrong
    # These pairs are cut off as the tables predict: the probe finds nothing wrong with that.
    assert not any(name.startswith("probe") for name in wrong)

    class Blackhole(ModelEngine):
        def probe_stop(self):
            probed = super().probe_stop()
            late = probed.sent > probed.sent.max() / 2
            return replace(probed, received=np.where(late, np.nan, probed.received))

    wrong = failed(rehearse(load_scenario("quadric-link-q3"), Blackhole))
    assert any(name.startswith("probe") for name in wrong)


@pytest.mark.parametrize("name", ["hot-permutation-q4", "tornado-q5"])
def test_flows_that_get_less_than_their_share_fail(name):
    class Half(ModelEngine):
        def carry(self, hosts, flows, seconds):
            rate, loads = super().carry(hosts, flows, seconds)
            return rate / 2, loads

    wrong = failed(rehearse(load_scenario(name), Half))
    assert len(wrong) == 1
    assert "of what is offered arrives" in next(iter(wrong))


def test_the_hot_permutation_needs_its_alternates():
    """With minimal paths only 38 % arrives, as the scenario without alternates says."""
    hot, minimal = map(load_scenario, ("hot-permutation-alternates-q4", "hot-permutation-q4"))
    assert failed(rehearse(replace(hot, fabric=minimal.fabric)))
    least = rehearse(minimal).throughput.ratios()
    most = rehearse(hot).throughput.ratios()
    assert least["fair"] == least["carried"] == pytest.approx(0.381, abs=1e-3)
    assert most["carried"] == pytest.approx(0.572, abs=1e-3)


@pytest.mark.parametrize("name", ["first-light-polarstar", "first-light-pn", "even-q4"])
def test_a_wrong_table_fails(name):
    loaded = load_scenario(name)
    build = compile_fabric(loaded.fabric)
    port = build.tables.classes.port.copy()
    port[3, [0, 1]] = port[3, [1, 0]]
    classes = replace(build.tables.classes, port=port)
    spoiled = replace(build, tables=replace(build.tables, classes=classes))
    wrong = failed(rehearse(loaded, build=spoiled))
    assert {"every pair: shortest paths", "every pair: delivered"} & set(wrong)


def test_an_engine_without_an_ability_refuses_by_name():
    loaded = load_scenario("miswire-q3")
    build = compile_fabric(loaded.fabric)
    wanted = needs(loaded.scenario, cases(loaded.scenario, build, loaded.document))
    assert wanted == {"events": "controller killed"}
    require("model", wanted)
    with pytest.raises(InputError, match=r"engine ovs-fabric: required an engine that can do"):
        require("ovs-fabric", {"flows": "traffic.flows"})


@pytest.mark.parametrize("engine", ["linux", "frr"])
def test_an_engine_of_routers_refuses_valiant_and_names_engines_that_have_it(engine, tmp_path):
    """The message proposed an option of `render`, which a rehearsal does not have."""
    file = tmp_path / "scenario.yaml"
    fabric = "{name: x, topology: {family: polarfly, q: 2}, routing: {balance: valiant}}"
    file.write_text(f"name: x\nfabric: {fabric}\n")
    wanted = plan(load_scenario(str(file))).needs
    assert wanted == {"intermediates": "balance: valiant"}
    with pytest.raises(InputError) as refused:
        require(engine, wanted)
    assert str(refused.value) == (
        f"engine {engine}: required an engine that can do balance: valiant (intermediates),"
        f" given {engine}; use `engine mininet or ovs-fabric or model`"
    )


def test_an_engine_without_a_controller_refuses_to_repair(tmp_path):
    file = tmp_path / "scenario.yaml"
    for text, wanted in (("", {}), ("repair: false\n", {}), ("repair: true\n", "repair: true")):
        file.write_text(
            f"name: x\nfabric: {{name: x, topology: {{family: polarfly, q: 2}}}}\n{text}"
        )
        wants = needs(load_scenario(str(file)).scenario, ())
        assert wants == (wanted and {"repair": wanted})
    for engine in ("model", "mininet", "ovs-fabric"):
        require(engine, wants)
    for engine in ("linux", "frr"):
        with pytest.raises(InputError, match=r"required an engine that can do repair: true"):
            require(engine, wants)


def moments(tmp_path, *lines):
    file = tmp_path / "scenario.yaml"
    text = "\n".join(f"  - {line}" for line in lines)
    head = "name: x\nfabric: {name: lab, topology: {family: polarfly, q: 3}}\ntimeline:\n"
    file.write_text(f"{head}{text}\n")
    loaded = load_scenario(str(file))
    return cases(loaded.scenario, compile_fabric(loaded.fabric), loaded.document)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["link_down: 0-2"], r"scenario.yaml:4: timeline\[0\].link_down: required a node, or a li"),
        (["node_down: 4", "node_up: 44"], r"yaml:5: timeline\[1\].node_up: .*given 44"),
        (["rack_down: fan9"], r"required one of quadrics, fan1, fan2, fan3, given fan9; did you m"),
        (["rack_down: A1"], r"required one of quadrics, fan1, fan2, fan3, given A1$"),
        (["miswire: [0-1, 1-4]"], r"miswire: required two links of four nodes, given 0-1 and 1-4"),
        (["{each: link, controller: killed}"], r"given controller and each; one moment, one event"),
        (
            ["{node_down: 4, at: 2.5}", "{node_up: 4, at: 1}"],
            r"yaml:5: timeline\[1\].at: required times that rise, given 1 after 2.5",
        ),
        (["{node_dwn: 4}"], r"yaml:4: timeline\[0\].node_dwn: .*did you mean node_down"),
    ],
)
def test_mistakes_in_a_timeline(tmp_path, lines, message):
    with pytest.raises(InputError, match=message):
        moments(tmp_path, *lines)


def test_a_rack_goes_down_as_it_was_planned(tmp_path):
    """The centre of a fan is not installed: the others of the fan do not fall to the quadrics."""
    nodes = "\n".join(
        f"  - {{name: n{n}, type: leaf, vertex: {n}{', state: planned' if n == 10 else ''}}}"
        for n in range(13)
    )
    leaf = 'node_types: {leaf: {ports: [{name: "p{}", count: 5}]}}'
    (tmp_path / "inventory.yaml").write_text(f"{leaf}\nnodes:\n{nodes}\n")
    file = tmp_path / "scenario.yaml"
    fabric = "{name: lab, topology: {family: polarfly, q: 3}, inventory: inventory.yaml}"
    file.write_text(
        f"name: x\nfabric: {fabric}\ntimeline: [{{rack_down: quadrics}}, {{rack_down: fan3}}]\n"
    )
    loaded = load_scenario(str(file))
    built = compile_fabric(loaded.fabric)
    quadrics, fan = cases(loaded.scenario, built, loaded.document)
    assert sorted(quadrics.event.switches) == ["n11", "n12", "n8", "n9"]
    assert sorted(fan.event.switches) == ["n0", "n7"]


def test_a_sample_of_each_is_seeded(tmp_path):
    some = [case.what for case in moments(tmp_path, "{each: node, sample: 5, seed: 3}")]
    assert len(set(some)) == 5
    assert some == [case.what for case in moments(tmp_path, "{each: node, sample: 5, seed: 3}")]
    assert some != [case.what for case in moments(tmp_path, "{each: node, sample: 5, seed: 4}")]


def test_paths_are_checked_on_engines_that_know_them(tmp_path):
    file = tmp_path / "scenario.yaml"
    text = "name: x\nengine: model\nfabric: {name: lab, topology: {family: polarfly, q: 3}}\n"
    file.write_text(text + "expect: {paths: [[0, 1], [0, 4, 2]]}\n")
    assert not failed(rehearse(load_scenario(str(file))))
    file.write_text(text + "expect: {paths: [[0, 1], [0, 7, 2]]}\n")
    wrong = failed(rehearse(load_scenario(str(file))))
    assert [str(m) for m in wrong["every pair: paths"].mismatches] == [
        "0 → 2: expected 0 7 2, seen 0 4 2"
    ]


def test_paths_over_nodes_that_are_not_there_are_refused_before_anything_runs(tmp_path):
    """They were, without a file and a line, once the fabric was up and all pairs were checked."""
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "name: x\nengine: model\nfabric: {name: lab, topology: {family: polarfly, q: 3}}\n"
        "timeline: [{link_down: 0-1, expect: {paths: [[0, 44]]}}]\n"
        "expect: {paths: [[0, 1], [0, n99, 2]]}\n"
    )
    with pytest.raises(InputError) as refused:
        plan(load_scenario(str(file)))
    first, second = map(str, refused.value.problems)
    assert f"{file}:5: expect.paths: required a node" in first
    assert "given n99" in first
    assert f"{file}:4: timeline[0].expect.paths: required a node" in second


def test_events_at_their_times_are_watched_by_the_probe_alone(tmp_path):
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "name: x\nengine: model\nfabric: {name: lab, topology: {family: polarfly, q: 3}}\n"
        "repair: false\n"
        "traffic: {probe: {interval: 0.1, pairs: 0}}\n"
        "timeline:\n"
        "  - {link_down: 0-1, at: 1.5}\n"
        "  - {link_up: 0-1, at: 4}\n"
        "  - {node_down: 4, at: 5}\n"
    )
    result = rehearse(load_scenario(str(file)))
    assert not failed(result)
    assert [event.at for event in result.events] == [1.5, 4, 5]
    assert [event.reached for event in result.events] == [None, None, 124]
    # Without protection ten pairs are cut off for 2.5 seconds; the rest is the dark node's.
    lost = result.probe_history.sent.sum() - result.probe_history.received.sum()
    rounds = (result.probe_history.sent.sum() / 156) - 50
    assert lost == 10 * 25 + (156 - 124) * rounds
