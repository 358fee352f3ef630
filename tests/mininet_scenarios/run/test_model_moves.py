"""Fabrics that move from build to build on the model, and the probe that must be honest."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compilers.tables.folders.build_folder import save
from inventory.problems import InputError
from mininet_scenarios.engines.model_engine import ModelEngine
from mininet_scenarios.run.timeline import clean_interval
from mininet_scenarios.scenario.engine import EngineError, Setup
from mininet_scenarios.scenario.outage import ControllerChange
from mininet_scenarios.scenario.scenario_file import load_scenario
from mininet_scenarios.scenario.timeline_events import as_cabled, cabled_build
from tests.compilers.update.updates import build, grown
from tests.mininet_scenarios.run.test_library import failed, rehearse

FULL = ("compact-valiant", "link")
CRASH, GROWTH = "controller-crash-in-rollout-q3", "expansion-under-traffic-q3"
HEAD = "name: x\nfabric: {name: lab, topology: {family: polarfly, q: 3}}\n"
PROBE = "traffic: {probe: {interval: 0.1, pairs: 0}}\n"


def scenario(tmp_path, text, head=HEAD):
    (tmp_path / "scenario.yaml").write_text(head + text)
    return load_scenario(str(tmp_path / "scenario.yaml"))


def test_a_crash_after_which_nothing_goes_on_fails():
    class Stays(ModelEngine):
        """The second controller does nothing."""

        def apply(self, event):
            if event != ControllerChange(running=True):
                super().apply(event)

    crash, growth = load_scenario(CRASH), load_scenario(GROWTH)
    assert not failed(rehearse(growth, Stays))
    moment = crash.scenario.timeline[0].model_copy(update={"policy": None, "expand": "quadric:1"})
    timeline = (moment, *crash.scenario.timeline[1:])
    grows = growth.scenario.model_copy(update={"timeline": timeline})
    grows = replace(growth, scenario=grows, document=None)
    assert "new build, every pair: delivered" in failed(rehearse(grows, Stays))


@pytest.mark.parametrize(
    ("topology", "balance"),
    [
        ("polarfly, q: 3", "balance: valiant, protect: link"),
        ("hyperx, sides: 3x3", "balance: ecmp, transit: ecmp"),
    ],
)
def test_a_fabric_moves_to_every_balance_and_back(tmp_path, topology, balance):
    head = HEAD.replace("polarfly, q: 3", topology)
    (tmp_path / "fabric.yaml").write_text(
        f"name: lab\ntopology: {{family: {topology}}}\nrouting: {{{balance}}}\n"
    )
    (tmp_path / "plain.yaml").write_text(f"name: lab\ntopology: {{family: {topology}}}\n")
    text = f"{PROBE}timeline: [{{build: fabric.yaml}}, {{build: plain.yaml}}]\n"
    result = rehearse(scenario(tmp_path, text, head))
    assert not failed(result)
    assert len(result.events) == 2


DEAD = "generate: {type: copackaged-4x8}\ndead_links: [{a: n7, b: n12}]\n"


def a_link_goes(tmp_path):
    """A quadric's link, which is in no triangle: rows must change in order."""
    fabric = "name: lab\ntopology: {family: polarfly, q: 3}\ninventory: "
    (tmp_path / "fabric.yaml").write_text(f"{fabric}inventory.yaml\n")
    (tmp_path / "inventory.yaml").write_text("generate: {type: copackaged-4x8}\n")
    (tmp_path / "less.yaml").write_text(f"{fabric}dead.yaml\n")
    (tmp_path / "dead.yaml").write_text(DEAD)
    text = f"{PROBE}timeline: [{{build: less.yaml}}]\n"
    return scenario(tmp_path, text, "name: x\nfabric: fabric.yaml\n")


def test_a_link_that_goes_loses_nothing(tmp_path):
    result = rehearse(a_link_goes(tmp_path))
    assert not failed(result)
    assert [event.lost for event in result.events] == [0]
    assert "new build, every pair: at most 4 hops" in {check.name for check in result.checks}


def test_a_move_that_is_refused_fails_and_the_old_build_is_checked(tmp_path):
    class Refuses(ModelEngine):
        """Takes the move back."""

        def settle(self, patience):
            refused = "n8 refused round 4" if self.move else ""
            self.move = None
            return refused or super().settle(patience)

    result = rehearse(a_link_goes(tmp_path), Refuses)
    wrong = failed(result)
    assert list(wrong) == ["build: less.yaml: moved"]
    (told,) = wrong["build: less.yaml: moved"].mismatches
    assert str(told) == "the fabric: expected moved, seen taken back: n8 refused round 4"
    assert result.events[0].max_hops == 2
    assert not any(check.name.startswith("new build") for check in result.checks)


def test_failures_after_a_move_are_of_the_new_build(tmp_path):
    """Switch numbers change with the build; links are named by its names and fail by its tables."""
    text = (
        "repair: false\ntimeline:\n  - policy: {protect: link}\n  - link_down: 7-12\n"
        "    expect: {delivered: 156}\n  - link_up: 7-12\n"
    )
    result = rehearse(scenario(tmp_path, text))
    assert not failed(result)
    assert [event.reached for event in result.events] == [156] * 3
    plain = rehearse(scenario(tmp_path, text.replace("protect: link", "balance: compact-valiant")))
    assert "link 7-12 down: delivered" in failed(plain)


def test_a_link_that_is_down_stays_down_through_a_move(tmp_path):
    text = (
        "repair: false\ntimeline:\n  - link_down: 7-12\n  - policy: {protect: link}\n"
        "    expect: {delivered: 156}\n  - link_up: 7-12\n    expect: {delivered: 156}\n"
    )
    result = rehearse(scenario(tmp_path, text))
    assert not failed(result)
    assert result.events[0].reached < 156
    assert [event.reached for event in result.events[1:]] == [156, 156]


def test_builds_have_the_names_of_the_one_that_is_cabled():
    small, large = build(policy=FULL), grown(build(policy=FULL), "quadric", 1)
    assert cabled_build([small, large]) is cabled_build([large, small]) is large
    assert cabled_build([small, small]) is small
    wiring = small.wiring
    called = [f"{name}-old" for name in (*wiring.names, *wiring.host_names)]
    names, host_names = called[: len(wiring.names)], called[len(wiring.names) :]
    other = replace(wiring, names=tuple(names), host_names=tuple(host_names))
    named = as_cabled(replace(small, wiring=other), large)
    assert named.wiring.names == wiring.names
    ports = wiring.host_port.ravel() > 0
    assert ports.any()
    for name, was, port in zip(named.wiring.host_names, wiring.host_names, ports, strict=True):
        assert (name == was) == port


def test_builds_of_which_neither_has_all():
    one, other = (build(dead=(ends,)) for ends in (("n7", "n12"), ("n0", "n4")))
    with pytest.raises(InputError, match=r"without the cable from n0 \S+ to n4 \S+ \(1 in"):
        cabled_build([one, other])


def test_a_host_that_moves_is_told_apart_from_what_a_build_in_between_helps():
    """The advice was a build in between, which cannot have a host at two places."""
    old = build()
    host_port = old.wiring.host_port.copy()
    host_port[0, 0] += 40
    new = replace(old, wiring=replace(old.wiring, host_port=host_port))
    with pytest.raises(InputError, match="rehearse the rest without its move"):
        cabled_build([old, new])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("{build: nowhere.yaml}", r"nowhere.yaml: required a file"),
        ("{expand: quadric 1}", r"yaml:3: timeline\[0\].expand: "),
        ("{controller: killed, in_round: 2}", r"yaml:3: timeline\[0\].in_round: required controll"),
        ("{policy: {protect: link}, node_down: 3}", r"given node_down and policy; one moment"),
    ],
)
def test_mistakes(tmp_path, lines, message):
    with pytest.raises(InputError, match=message):
        rehearse(scenario(tmp_path, f"timeline: [{lines}]\n"))


def test_hardware_that_is_full_does_not_grow(tmp_path):
    ports = "[{name: 'eth{}', count: 4, role: fabric}, {name: host, count: 1, role: host}]"
    (tmp_path / "inventory.yaml").write_text(
        f"node_types: {{full: {{ports: {ports}}}}}\n"
        f"nodes: [{', '.join(f'{{name: n{v}, type: full}}' for v in range(13))}]\n"
    )
    head = HEAD.replace("fabric: {", "fabric: {inventory: inventory.yaml, ")
    with pytest.raises(InputError, match=r"yaml:3: timeline\[0\].expand: required 2 unused ports"):
        rehearse(scenario(tmp_path, "timeline: [{expand: quadric:1}]\n", head))


def test_a_build_folder_takes_no_policy(tmp_path):
    loaded = scenario(tmp_path, "timeline: [{policy: {protect: link}}]\n")
    save(build(), tmp_path / "build")
    with pytest.raises(InputError, match="a fabric before it that is compiled"):
        rehearse(replace(loaded, fabric=None, folder=tmp_path / "build"))


class Busy(ModelEngine):
    """Loses a packet a control window while packets come faster than `keeps` seconds apart."""

    keeps = 0.5

    def probe_stop(self):
        interval = self.probe.interval
        probed = super().probe_stop()
        received = probed.received.copy()
        received[5] = np.nan if interval < self.keeps else received[5]
        return replace(probed, received=received)


def told(lines):
    def step(_, what):
        lines.append(what)
        return nullcontext(lambda done, total: None)  # noqa: ARG005

    return step


def interval_on(engine, pairs=12, interval=0.1):
    lines = []
    made = engine(Setup((build(),), (), Path()))
    ends = made.hosts.pairs(np.array([(0, n % 12 + 1) for n in range(pairs)]))
    return *clean_interval(made, ends, interval, told(lines)), lines


def test_the_probe_is_slowed_until_it_loses_nothing_by_itself():
    interval, seen, lines = interval_on(Busy)
    assert interval == pytest.approx(0.8)
    assert seen[0] == "every 0.1 s: 1 of 120 packets lost"
    assert len(seen) == len(lines) - 1 == 3
    assert interval_on(ModelEngine)[:2] == (0.1, [])


@pytest.mark.parametrize(
    ("interval", "slowed"),
    [(0.01, ["every 0.01 s: 15,600 packets a second, where 2,000 go"]), (0.1, [])],
)
def test_a_fast_probe_is_slowed_before_a_failure(tmp_path, interval, slowed):
    class Half(Busy):
        keeps = 0.05

    probe = f"traffic: {{probe: {{interval: {interval}, pairs: 0}}}}\n"
    loaded = scenario(tmp_path, probe + "timeline: [{link_down: 0-1}, {link_up: 0-1}]\n")
    result = rehearse(loaded, Half)
    assert result.passed
    assert result.slowed == slowed


def test_a_machine_that_is_too_busy_gives_no_verdict():
    class TooBusy(Busy):
        keeps = 100

    with pytest.raises(EngineError, match="too busy: the probe itself loses packets"):
        interval_on(TooBusy)
    with pytest.raises(EngineError, match="so it cannot tell what an event loses"):
        rehearse(load_scenario(GROWTH), TooBusy)


def test_a_probe_that_is_silent_gives_no_verdict():
    class Silent(ModelEngine):
        """Sends only the first packet of each pair."""

        def probe_stop(self):
            probed = super().probe_stop()
            few = np.arange(len(probed.pair)) < len({*probed.pair.tolist()})
            columns = (getattr(probed, name)[few] for name in probed.__slots__)
            return type(probed)(*columns)

    with pytest.raises(EngineError, match=r"every 0.1 s: 1 packets of a pair sent where 10"):
        interval_on(Silent)
