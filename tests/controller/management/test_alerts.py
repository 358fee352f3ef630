"""The alert rules fire on what a controller exports when something is amiss, and only then."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from time import time
from types import SimpleNamespace

import numpy as np
import pytest
from prometheus_client import generate_latest

from controller.management.metrics import Metrics
from controller.state import Overview, State
from controller.switches.events import (
    BuildKept,
    CableMisplaced,
    DriftFound,
    LinkSuppressed,
    ReturnRefused,
    SwitchReaddressed,
    TablesRepaired,
)
from controller.switches.session import LiveFabric
from controller.upkeep.port_counters import COUNTERS
from tests.compilers.fabrics import polarfly_build
from tests.controller.makers import loaded

RULES = Path(__file__).parents[3] / "docs" / "operate" / "alerts.yml"
UP = 'up{job="polarfab"}'
LEAD, FOLLOW = {"role": "leader", "leader": "a"}, {"role": "follower", "leader": "a"}


@dataclass
class Ports:
    """The keeper's arrays."""

    dead: np.ndarray = field(default_factory=lambda: np.zeros((13, 4), bool))
    drained: np.ndarray = field(default_factory=lambda: np.zeros(13, bool))

    def status(self):
        return {}


class Site:
    """A fabric of which all is well, and what its controller exports."""

    def __init__(self):
        build = replace(polarfly_build(3), identity="0123456789abcdef")
        self.fabric = LiveFabric(loaded(build), lambda *_: ("type", "code"))
        for v in range(13):
            self.fabric.connected(v, v + 1)
            self.fabric.present[v].last_read_at = self.fabric.clock()
            self.fabric.synced(self.fabric.present[v])
        self.ports, self.other, self.parts = Ports(), {}, {"leading": LEAD}
        self.overview = Overview(lambda: replace(State.of(self.fabric, self.ports), **self.parts))
        port = {"port": np.array([1])} | {what: np.array([0], np.uint64) for what in COUNTERS}
        self.counters = SimpleNamespace(by_vertex={0: port})
        later = time() + 100 * 86400
        self.tls = SimpleNamespace(expires={"certificate": later}, peers={"4": later})
        self.metrics = Metrics(self.overview, self.counters, self.tls)

    def series(self):
        """The value of each series."""
        text = generate_latest(self.metrics.registry).decode()
        lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
        return dict(lines) | {UP: "1"} | self.other


def exports(name, value):
    """A number that the metrics take from somewhere else."""

    def happen(site):
        assert name in site.series()
        site.other = {name: value}

    return happen


def dead(site):
    site.ports.dead[0, 0] = site.ports.dead[1, 0] = True


def told(event):
    def happen(site):
        site.overview.happened(event)
        site.metrics.happened(event)

    return happen


def returned(site):
    """It is connected, and was not read to hold its program."""
    site.fabric.closed(4)
    site.fabric.connected(4, 5)


def forgets(site):
    returned(site)
    site.fabric.present[4].state = "drifting"


def guessed(site):
    site.fabric.rejected.counts["token-refused"] = 30


def errors(site):
    site.counters.by_vertex[0]["errors"][0] = 10_000


LINK = ("3", "2", "7", "1")
CASES = {
    "": lambda _: None,
    "Stuck": exports("polarfab_alive", "0.0"),
    "Bug": exports("polarfab_bugs_total", "1.0"),
    "ApiRestarts": exports("polarfab_http_restarts_total", "1.0"),
    "PeersRejected": exports("polarfab_rejected_peers_total", "30.0"),
    "SwitchGone": lambda site: site.fabric.closed(3),
    "SwitchNotInSync": returned,
    "SwitchError": lambda site: site.fabric.errors.update({"4": "group mod failed"}),
    "ForeignRows": exports("polarfab_switches_shadowed", "1"),
    "LinkDead": dead,
    "LinkDoubtful": exports("polarfab_links_doubtful", "3"),
    "SwitchReaddressed": told(SwitchReaddressed("3", "192.0.2.9:1", "192.0.2.1")),
    "SwitchForgets": forgets,
    "SwitchDrained": lambda site: site.ports.drained.__setitem__(5, True),
    "PortErrors": errors,
    "RepairSlow": told(TablesRepaired(1, 0, 1, 1, 1, 0, 0.1, 20.0)),
    "CertificateEnds": lambda site: site.tls.expires.update(certificate=time() + 86400),
    "SwitchCertificateEnds": lambda site: site.tls.peers.update({"4": time() + 86400}),
    "TokensGuessed": guessed,
    "LinkFlaps": told(LinkSuppressed(*LINK, 15.0)),
    "Miswired": told(CableMisplaced(1, "swap", "swap", *LINK)),
    "Drift": told(DriftFound("3", 1, 0, 0)),
    "AuditLate": exports("polarfab_oldest_audit_seconds", "1300"),
    "MoveFailed": told(BuildKept("x", "why")),
    "CannotReturn": told(ReturnRefused("x", "y", "why")),
    "MoveWaits": lambda site: site.parts.update(rollout={"waits_for": "the disk"}),
    "ChangeWaits": lambda site: site.parts.update(links={"waits_for": ["3"]}),
    "BuildOnTrial": lambda site: site.parts.update(rollout={"until": 1e9}),
    "NoLeader": lambda site: site.parts.update(leading=FOLLOW),
    "ControllerGone": exports(UP, "0"),
}
"""What happens in the sixth minute, by the alert that has to fire, all others silent."""


def _five(value):
    """Six samples of a series, or of none."""
    return "_x5" if value is None else f"{value}+0x5"


@cache
def series_where_all_is_well():
    return Site().series()


def case(alert, happen):
    before, site = series_where_all_is_well(), Site()
    happen(site)
    after = site.series()
    fired = [{"labels": f'{{alertname="Polarfab{alert}"}}', "value": 1}] * bool(alert)
    firing = 'count by (alertname) (ALERTS{alertstate="firing"})'
    return {
        "name": alert or "nothing",
        "interval": "1m",
        "input_series": [
            {"series": name, "values": f"{_five(before.get(name))} {after[name]}+0x25"}
            for name in after
        ],
        "promql_expr_test": [{"expr": firing, "eval_time": "19m", "exp_samples": fired}],
    }


def test_every_rule_has_a_case():
    rules = set(re.findall(r"alert: Polarfab(\w+)", RULES.read_text()))
    assert rules == {*CASES} - {""}


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (package prometheus)")
def test_alerts_fire_when_they_should_and_only_then(tmp_path):
    file = tmp_path / "tests.yml"
    tests = [case(alert, happen) for alert, happen in CASES.items()]
    file.write_text(json.dumps({"rule_files": [str(RULES)], "tests": tests}))
    done = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
