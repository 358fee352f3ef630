"""Every rule of real switches is reached by packets, and faults that pings pass over are seen."""

import pickle
from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import save
from mininet_scenarios.verdict.result import rule_checks
from tests.polarfab.forked import printed_apart

pytestmark = pytest.mark.live
FABRIC = """name: lab
topology: {family: polarfly, q: 2}
addressing: {ipv6: "fd00::/48"}
routing: {balance: compact-valiant, protect: link}
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The exercises of `live_rules.py`, by fault."""
    folder = tmp_path_factory.mktemp("rules")
    (folder / "fabric.yaml").write_text(FABRIC)
    (folder / "logs").mkdir()
    save(compile_fabric(load_fabric(folder / "fabric.yaml")), folder / "build")
    script = Path(__file__).with_name("live_rules.py")
    places = [str(folder / name) for name in ("build", "logs")]
    printed = printed_apart(script, *places, timeout=300)
    return pickle.loads(bytes.fromhex(printed))  # noqa: S301


def failed(exercise):
    return {check.name for check in rule_checks(exercise) if not check.passed}


def test_every_repair_bucket_is_reached_with_ports_away(found):
    everything = found["repairs"]
    assert failed(everything) == set()
    assert everything.exercised == everything.due == everything.rules
    assert everything.checks[1].required > 0


def test_what_waits_for_failures_is_said(found):
    exercise, everything = found["wrong"], found["repairs"]
    assert exercise.due < exercise.rules == everything.rules
    assert len(exercise.waiting) == exercise.rules - exercise.due


@pytest.mark.parametrize(
    ("host", "kind", "seen"),
    [
        ("h3", "IPv4", "DSCP or ECN 0"),
        ("h4", "IPv4", "source MAC address 020000000099 instead of"),
        ("h5", "UDP", "lost"),
        ("h6", "1500 bytes", "lost"),
    ],
    ids=["DSCP rewritten", "wrong source MAC address", "UDP dropped", "MTU 1000"],
)
def test_a_fault_that_pings_pass_over(found, host, kind, seen):
    assert "frames arrive as they were sent" in failed(found["wrong"])
    wrong = [(m.where, m.seen) for m in found["wrong"].checks[0].mismatches]
    from_h6 = [where for where, _ in wrong if where.startswith("h6 →")]
    assert all("1500 bytes" in where for where in from_h6 if "→ h0," in where)
    wrong = [(where, what) for where, what in wrong if where not in from_h6]
    there = [(where, what) for where, what in wrong if f"→ {host}," in where]
    assert len({where.split()[0] for where, _ in there}) >= 5  # from every other host
    assert all(kind in where and seen in what for where, what in there)
    assert not any("→ h0," in where or "→ h2," in where for where, _ in wrong)


def test_alternates_that_are_not_there(found):
    wrong = found["wrong"]
    assert {"rules exercised", "ports of select groups have their shares"} < failed(wrong)
    assert any("of the enter group" in words for words in wrong.missed)
    assert all(words.startswith("2: ") for words in wrong.missed if "the enter group" in words)
    assert all(m.where.startswith("2, ") for m in wrong.checks[1].mismatches)
