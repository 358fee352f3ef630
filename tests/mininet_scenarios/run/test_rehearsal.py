"""The checks: each finds its fault and names it, and a rehearsal on the model passes."""

import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inventory.problems import InputError
from mininet_scenarios.engines.model_engine import ModelEngine
from mininet_scenarios.machine.preflight import namespaces
from mininet_scenarios.run.rehearsal import carry_out, choose_diversion
from mininet_scenarios.run.rehearsal_plan import Plan, PlannedBuild
from mininet_scenarios.scenario.engine import Diversion, HostSample, Setup
from mininet_scenarios.scenario.observations import SILENT
from mininet_scenarios.scenario.scenario_file import Scenario
from mininet_scenarios.scenario.timeline_events import cases
from mininet_scenarios.verdict.checks import Examiner
from mininet_scenarios.verdict.predict import Prediction
from polarfab import Fabric
from tests.compilers.routed import routed


def quiet(done, total):
    """Nobody wants to know."""
    del done, total


class Listener:
    """Keeps what it is told."""

    def __init__(self):
        self.notes = []

    def step(self, _):
        return nullcontext(quiet)

    def note(self, text):
        self.notes.append(text)


class Round:
    """One round of all pairs on the model, and the examiner of it."""

    def __init__(self, build, hosts=None):
        self.hosts = HostSample.of(build, hosts)
        self.engine = model(build, hosts)
        self.examiner = Examiner(Prediction.of(build), self.hosts)
        self.counts = self.hosts.every_pair()
        self.seen = self.send(self.counts)

    def send(self, counts):
        return self.engine.send(self.hosts.names, counts, quiet)

    def failed(self, seen, **expect):
        checks = self.examiner.table_checks("all", self.counts, seen)
        expect = self.examiner.default_expectations().model_copy(update=expect)
        asked = self.counts > 0
        checks += self.examiner.expectation_checks("all", expect, asked, seen.longest, self.engine)
        return {
            check.name: list(map(str, check.mismatches)) for check in checks if not check.passed
        }


def model(build, hosts=None):
    return ModelEngine(Setup((build,), (), Path(), hosts=hosts))


def rehearse(build, engine=None, **keys):
    scenario = Scenario(name="trial", **keys)
    listener = Listener()
    engine = engine or model(build, scenario.hosts)
    plan = Plan(scenario, (PlannedBuild(build),), build)
    return carry_out(plan, engine, listener), listener.notes


@pytest.mark.parametrize(("q", "hosts"), [(2, 1), (3, 2)])
def test_a_right_fabric_passes(compiled, q, hosts):
    result, notes = rehearse(compiled(q, hosts))
    assert result.passed
    assert result.delivered == result.pairs == hosts * (n := q * q + q + 1) * (hosts * n - 1)
    assert result.seen_hops == result.predicted_hops
    assert result.seen_hops[1] == hosts * hosts * q * (q + 1) ** 2
    assert len(notes) == 1
    assert notes[0].startswith("a wrong table was caught: class ")
    assert all(check.required == check.seen for check in result.checks)


@pytest.mark.parametrize(
    ("expect", "said"), [({}, 0), ({"rules": "none"}, 0), ({"rules": "all"}, 1)]
)
def test_who_asks_for_rules_hears_that_an_engine_has_none(compiled, expect, said):
    result, notes = rehearse(compiled(2, 1), expect=expect)
    assert result.passed
    assert len([note for note in notes if "no OpenFlow rows" in note]) == said


def test_some_of_the_hosts(compiled):
    result, _ = rehearse(compiled(3, 3), hosts=2)
    assert result.passed
    assert result.pairs == 26 * 25


def test_a_lost_packet_is_named(compiled):
    trial = Round(compiled(3))
    arrived, longest = trial.seen.arrived.copy(), trial.seen.longest.copy()
    arrived[4, 9], longest[4, 9] = 0, SILENT
    failed = trial.failed(replace(trial.seen, arrived=arrived, longest=longest))
    assert failed == {
        "all: arrived": ["h4 → h9: expected 1 packet, seen 0 packets"],
        "all: delivered": ["h4 → h9: expected delivered, seen lost (the tables deliver it)"],
    }


def test_a_longer_path_is_named(compiled):
    trial = Round(compiled(3))
    hops = trial.seen.longest.copy()
    i, j = np.argwhere(hops == 2)[0]
    hops[i, j] = 3
    failed = trial.failed(replace(trial.seen, shortest=hops, longest=hops))
    told = [f"h{i} → h{j}: expected 2 hops, seen 3 hops"]
    assert failed == {
        "all: hops as predicted": told,
        "all: at most 2 hops": told,
        "all: shortest paths": told,
    }


def test_paths_of_different_lengths_are_a_mismatch(compiled):
    trial = Round(compiled(3))
    shortest = trial.seen.shortest.copy()
    shortest[tuple(np.argwhere(shortest == 2)[0])] = 1
    assert list(trial.failed(replace(trial.seen, shortest=shortest))) == ["all: hops as predicted"]


def test_one_packet_on_another_link_is_named(compiled):
    build = compiled(3)
    trial = Round(build)
    loads = {name: ports.copy() for name, ports in trial.seen.loads.items()}
    port, far, far_port = (
        int(x[5, 0]) for x in (build.wiring.port, build.wiring.far, build.wiring.far_port)
    )
    before = int(loads["5"][port])
    loads["5"][port] += 1
    assert trial.failed(replace(trial.seen, loads=loads)) == {
        "all: link counters as predicted": [
            f"link 5 eth{port} → {far} eth{far_port}: expected {before} packets, seen {before + 1}"
        ]
    }


def test_expectations_can_be_set(compiled):
    trial = Round(compiled(3))
    assert list(trial.failed(trial.seen, max_hops=1)) == ["all: at most 1 hops"]
    assert list(trial.failed(trial.seen, delivered=150)) == ["all: delivered"]


def test_a_checker_that_sees_nothing_fails(compiled):
    build = compiled(3)

    class Blind(ModelEngine):
        def divert(self, _):
            pass

    result, notes = rehearse(build, Blind(Setup((build,), (), Path())))
    assert [check.name for check in result.checks if not check.passed] == [
        "a wrong table is caught"
    ]
    assert not notes


def test_a_table_that_stays_wrong_fails(compiled):
    build = compiled(3)

    class Stuck(ModelEngine):
        def restore(self):
            pass

    result, _ = rehearse(build, Stuck(Setup((build,), (), Path())))
    assert any(check.name.startswith("the right table again") for check in result.checks)
    assert not result.passed


@pytest.mark.parametrize("q", [2, 3])
def test_every_diversion_is_seen_at_each_of_its_pairs(compiled, q):
    build = compiled(q)
    trial = Round(build)
    diversion, counts = choose_diversion(trial.examiner)
    assert isinstance(diversion, Diversion)
    assert counts.any()
    trial.engine.divert(diversion)
    seen = trial.send(counts)
    hops = trial.examiner.table_checks("", counts, seen)[1]
    assert hops.required - hops.seen == counts.sum()


@pytest.mark.parametrize("marks", [False, True])
@pytest.mark.parametrize("protect", ["none", "link"])
def test_where_every_class_has_alternates_packets_in_transit_are_diverted(marks, protect):
    build = routed(q=3, spread=True, protect=protect, bounces=not marks, marks=marks)
    trial = Round(build)
    diversion, counts = choose_diversion(trial.examiner)
    trial.engine.divert(diversion)
    answers, *_ = trial.examiner.table_checks("", counts, trial.send(counts))
    assert 0 < answers.required - answers.seen < counts.sum()


@pytest.mark.parametrize(
    ("family", "balance"),
    [
        ({"family": "jellyfish", "nodes": 12, "degree": 4, "seed": 103}, "compact-valiant"),
        ({"family": "jellyfish", "nodes": 12, "degree": 4, "seed": 103}, "ecmp"),
        ({"family": "oft", "q": 2}, "compact-valiant"),
        ({"family": "hyperx", "sides": "3x4"}, "minimal"),
    ],
)
def test_the_wrong_table_is_one_that_packets_notice(family, balance):
    routing = {"balance": balance}
    routing |= {"minimal_share": 0.5} if balance == "compact-valiant" else {}
    spec = {"name": "lab", "topology": family, "routing": routing}
    trial = Round(Fabric.from_spec(spec).compile().build)
    diversion, counts = choose_diversion(trial.examiner)
    trial.engine.divert(diversion)
    seen = trial.send(counts)
    checks = trial.examiner.table_checks("", counts, seen, compares_links=False)
    assert not all(check.passed for check in checks)


def test_a_fabric_without_hosts_is_refused(compiled):
    with pytest.raises(InputError, match="at least two hosts"):
        rehearse(compiled(3, 0))


@pytest.mark.live
@pytest.mark.parametrize("me", ["127.0.0.1", "::1"])
def test_packets_of_a_round_that_come_or_are_lost(me):
    """To our own kernel's loopback address, and to others, to which it has no route."""
    lost = "192.0.2.1" if "." in me else "2001:db8::1"
    script = (
        "import os, sys; "
        "from mininet_scenarios.machine.network_namespace import NetworkNamespace; "
        "from mininet_scenarios.traffic.probing import UdpProber; "
        "UdpProber.late = 0.5; "  # nobody asks for an address here
        "other = NetworkNamespace(); "
        "ends = [(os.getpid(), sys.argv[1]), (other.pid, sys.argv[2])]; "
        "pairs = [(0, 0)] * 3 + [(0, 1)] * 200 + [(0, 0)] * 200; "
        "hops = UdpProber(ends, pairs).run_round(lambda *_: None); other.process.kill(); "
        "print(hops.tolist() == [0] * 3 + [-1] * 200 + [0] * 200)"
    )
    words = ["sh", "-c", f'ip link set lo up; exec "$0" -c "$1" {me} {lost}']
    done = subprocess.run(
        [*namespaces(), *words, sys.executable, script], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines()[-1:] == ["True"], done.stderr


class QueueingHosts(ModelEngine):
    """Hosts keep what they send while their switch has no power, and send it afterwards."""

    def probe_stop(self):
        probed = super().probe_stop()
        kept = np.isnan(probed.received) & (probed.pair == 0)
        received = np.where(kept, probed.sent.max(), probed.received)
        return replace(probed, received=received)


def test_what_a_dead_switchs_host_had_queued_is_no_delivery(compiled):
    build = compiled(3)
    timeline = [{"node_down": 0}, {"node_up": 0}]
    scenario = Scenario(name="trial", traffic={"probe": {"pairs": 0}}, timeline=timeline)
    plan = Plan(scenario, (PlannedBuild(build),), build, cases(scenario, build, None))
    engine = QueueingHosts(Setup((build,), (), Path(), repair=True))
    result = carry_out(plan, engine, Listener())
    assert [str(m) for check in result.checks for m in check.mismatches] == []
    cut_off = [check for check in result.checks if "cut off as predicted" in check.name]
    assert cut_off


def cut(build, repair, engine=ModelEngine):
    """A link of an unprotected fabric is cut and mended under a probe."""
    timeline = [{"link_down": "0-1"}, {"controller": "killed"}, {"link_down": "0-4"}]
    timeline += [{"controller": "started"}, {"link_up": ["0-1", "0-4"]}]
    probe = {"probe": {"pairs": 0}}
    scenario = Scenario(name="trial", traffic=probe, timeline=timeline, repair=repair)
    plan = Plan(scenario, (PlannedBuild(build),), build, cases(scenario, build, None))
    result = carry_out(plan, engine(Setup((build,), (), Path(), repair=repair)), Listener())
    assert [str(m) for check in result.checks for m in check.mismatches] == []
    return [event.reached for event in result.events]


def test_a_controller_that_runs_routes_around_failures(compiled):
    first, _, second, third, last = cut(compiled(3), repair=False)
    assert second == third < first < last == 156
    first, _, second, *rest = cut(compiled(3), repair=True)
    assert first == 156
    assert second < 156, "no controller runs"
    assert rest == [156, 156]


@pytest.mark.parametrize(
    ("balance", "certain", "possible"), [("minimal", 124, 124), ("compact-valiant", 116, 132)]
)
def test_pairs_with_some_paths_up_may_arrive(compiled, balance, certain, possible):
    """Without repair a dead switch cuts pairs off whose hash chooses a path over it."""
    build = compiled(3, balance=balance)
    timeline = [{"node_down": 4}]
    scenario = Scenario(name="trial", timeline=timeline, repair=False)
    plan = Plan(scenario, (PlannedBuild(build),), build, cases(scenario, build, None))
    result = carry_out(plan, ModelEngine(Setup((build,), (), Path())), Listener())
    event = result.events[0]
    assert (event.expected, event.possible) == (certain, possible)
    assert certain <= event.reached <= possible
    assert [str(m) for check in result.checks for m in check.mismatches] == []
