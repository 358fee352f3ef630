"""Repairs in the text: what only a dead link would show is told, with the file and the line.

Nothing is lost while all links are up; only the order of ports after a failure is another.
"""

from __future__ import annotations

import re
from itertools import combinations, product

import numpy as np
import pytest

from compilers.readers.emitted_forwarding import canonical
from tests.compilers.readers.emitted import check, fabric, write

BUILD = "spread, repaired"


def _ovs(edit):
    """A change to the repair buckets of a group."""

    def of(line):
        head, *buckets = line.split(",bucket=")
        if "fast_failover" not in head or len(buckets) != 3 or "group" in buckets[0]:
            return None
        return ",bucket=".join((head, *edit(buckets)))

    return "groups.txt", of


def _shifted(text):
    """The next port: a repair that is off by one."""
    return re.sub(r"(watch_port:|output:)(\d+)", lambda m: f"{m[1]}{int(m[2]) % 4 + 1}", text)


def _third(pattern, new):
    """A change to the first line that fits."""
    return lambda line: re.sub(pattern, new, line) if re.search(pattern, line) else None


REPAIRS = {
    ("ovs", "swapped"): _ovs(lambda b: (b[0], b[2], b[1])),
    ("ovs", "dropped"): _ovs(lambda b: b[:2]),
    ("ovs", "off by one"): _ovs(lambda b: (b[0], b[1], _shifted(b[2]))),
    ("ovs", "watches another port"): _ovs(
        lambda b: (b[0], b[1], re.sub(r"watch_port:\d+", "watch_port:9", b[2]))
    ),
    ("linux", "later"): ("routes.batch", _third("metric 2 table 254", "metric 5 table 254")),
    ("linux", "dropped"): ("routes.batch", _third(".*metric 3 table 254.*", "# gone")),
    ("linux", "off by one"): (
        "routes.batch",
        _third(r"nhid 500003 metric 2 table 254", "nhid 500001 metric 2 table 254"),
    ),
    ("linux", "bounce dropped"): ("routes.batch", _third(".*table 5001.*", "# gone")),
    ("frr", "later"): ("frr.conf", _third(r" 2 onlink$", " 5 onlink")),
    ("frr", "dropped"): ("frr.conf", _third(r"^ip route .* 3 onlink$", "! gone")),
    ("frr", "off by one"): ("frr.conf", _third(r" (\S+) eth3 2 onlink$", r" \1 eth4 2 onlink")),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("repairs")
    for target in ("ovs", "linux", "frr"):
        write(target, fabric(BUILD), out / target)
    return out


@pytest.mark.parametrize("case", REPAIRS, ids=" ".join)
def test_a_repair_that_is_another_is_told(case, written):
    target, (name, edit) = case[0], REPAIRS[case]
    path = written / target / "0" / name
    before = path.read_text()
    lines = before.split("\n")
    place, changed = next((n, new) for n, old in enumerate(lines) if (new := edit(old)))
    try:
        path.write_text("\n".join((*lines[:place], changed, *lines[place + 1 :])))
        report = check(target, fabric(BUILD), written / target, only={0})
    finally:
        path.write_text(before)
    assert report.differences
    told = [example.line for example in report.examples if example.file == str(path)]
    # The routes of one prefix stand together; they are told where they begin.
    assert any(abs(place + 1 - line) <= (0 if target == "ovs" else 3) for line in told), told


def _taken(chain, up):
    """What a chain does while some ports are up: who shares, in lowest terms; None: dropped."""
    for stage in chain:
        weights = {}
        for port, weight in stage:
            if port in up:
                weights[port] = weights.get(port, 0) + weight
        if weights or not stage:
            divisor = np.gcd.reduce(list(weights.values())) if weights else 1
            return {port: weight // divisor for port, weight in weights.items()} or None
    return None


STAGES = [(), *(((p, 1),) for p in (1, 2, 3)), ((1, 1), (2, 1)), ((1, 2), (2, 2)), ((2, 2), (3, 1))]
CHAINS = [chain for n in range(4) for chain in product(STAGES, repeat=n)]


@pytest.mark.parametrize("in_port", [0, 1])
def test_canonical_chains_are_equal_if_and_only_if_they_do_the_same_under_every_failure(in_port):
    ports = [port for port in (1, 2, 3) if port != in_port]
    ups = [{in_port, *some} for n in range(len(ports) + 1) for some in combinations(ports, n)]
    done = {}
    for chain in CHAINS:
        does = str([sorted(found.items()) if (found := _taken(chain, up)) else None for up in ups])
        done.setdefault(does, set()).add(canonical(chain, in_port))
    assert all(len(chains) == 1 for chains in done.values())
    assert len(set().union(*done.values())) == len(done)
