"""The alerts for routers fire on what exporters of FRR and SONiC say when something is amiss."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

OPERATE = Path(__file__).parents[2] / "docs" / "operate"
RULES, DASHBOARD = OPERATE / "router-alerts.yml", OPERATE / "grafana-routers.json"
SESSION = 'instance="a",afi="ipv4",peer="eth1",peer_desc="b eth1"'
ERRORS = 'sonic_interface_receive_errs{instance="a",device="Ethernet0",type="error"}'
WELL = {
    'up{job="frr",instance="a"}': "1x90",
    'frr_collector_up{instance="a",collector="bgp"}': "1x90",
    f"frr_bgp_peer_state{{{SESSION}}}": "1x90",
    f"frr_bgp_peer_uptime_seconds{{{SESSION}}}": "0+60x90",
    'frr_bfd_peer_state{instance="a",peer="fe80::2"}': "1x90",
    **{
        f'frr_route_total_fib{{instance="{name}",afi="ipv4",vrf="default"}}': "60x90"
        for name in "abc"
    },
    'node_network_up{instance="a",device="eth1"}': "1x90",
    'node_network_carrier_changes_total{instance="a",device="eth1"}': "2x90",
    'node_network_receive_errs_total{instance="a",device="eth1"}': "0x90",
    ERRORS: "0x90",
}
"""Series of a fabric of which all is well, minute by minute."""
AMISS = {
    "RouterGone": ("up", "1x80 0x9"),
    "RouterUnread": ("frr_collector_up", "1x80 0x9"),
    "SessionDown": ("frr_bgp_peer_state", "1x80 0x9"),
    "SessionShut": ("frr_bgp_peer_state", "1x60 2x29"),
    "SessionFlaps": ("frr_bgp_peer_uptime_seconds", "9x80 1 9 1 9 1 9 1 9 1"),
    "LinkSilent": ("frr_bfd_peer_state", "1x80 0x9"),
    "RoutesMissing": ('frr_route_total_fib{instance="b"', "60x80 9x9"),
    "RouterPortDown": ("node_network_up", "1x80 0x9"),
    "RouterPortFlaps": ("node_network_carrier_changes_total", "2x80 3 4 5 6 7 8 9 9 9"),
    "RouterPortErrors": ("node_network_receive_errs_total", "0x60 0+5x29"),
    "RouterPortErrors ": (ERRORS, "0x60 0+5x29"),
    "": ("up", "1x90"),
}
"""By alert: the series that is otherwise, and its values."""


def case(alert, start, values):
    series = {name: values if name.startswith(start) else well for name, well in WELL.items()}
    labels = f'{{alertname="Polarfab{alert.strip()}"}}'
    firing = 'count by (alertname) (ALERTS{alertstate="firing"})'
    return {
        "name": alert or "nothing",
        "interval": "1m",
        "input_series": [{"series": name, "values": said} for name, said in series.items()],
        "promql_expr_test": [
            {
                **{"expr": firing, "eval_time": "89m"},
                "exp_samples": [{"labels": labels, "value": 1}] if alert else [],
            }
        ],
    }


def test_every_rule_has_a_case():
    rules = set(re.findall(r"alert: Polarfab(\w+)", RULES.read_text()))
    assert rules == {alert.strip() for alert in AMISS} - {""}


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (package prometheus)")
def test_alerts_fire_when_they_should_and_only_then(tmp_path):
    tests = [case(alert, *otherwise) for alert, otherwise in AMISS.items()]
    file = tmp_path / "tests.yml"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "tests": tests}))
    done = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_shows_what_the_alerts_look_at():
    names = re.compile(r"(?:frr|node|sonic)_[a-z_]+")
    shown = set(names.findall(DASHBOARD.read_text()))
    assert set(names.findall(RULES.read_text())) - shown == {
        *("frr_collector_up", "frr_bgp_peer_uptime_seconds", "node_network_up"),
    }
