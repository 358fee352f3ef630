"""Probes: they cover, they are as few as can be, and every single failure is named by them."""

from collections import defaultdict
from itertools import pairwise

import pytest

from compilers.planes import compile_planes
from compilers.spec.fabric_file import load_fabric
from extensions.host_paths.localisation import Probing
from extensions.host_paths.probe_report import ProbeReport
from inventory.problems import InputError

STAR = {"family": "polarstar", "q": 5, "supernode": "inductive-quad", "degree": 3}


def probing(topology, options=None, **more):
    pools = {"ipv4": "10.0.0.0/8", "ipv6": "fd00::/48"}
    spec = {"name": "lab", "topology": topology, "addressing": pools, **more}
    return Probing.of(compile_planes(load_fabric(spec)), options)


def lost_by(found):
    """{plane and switches of a link, or of one switch: the probes that need it}, walking each."""
    needed = defaultdict(set)
    for probe in found.probes:
        for part in [*pairwise(probe.nodes), *((node,) for node in probe.nodes)]:
            needed[probe.plane, frozenset(part)].add(probe.number)
    return needed


def lost_without(found, plane, dead):
    return lost_by(found)[plane, frozenset(dead)]


@pytest.mark.parametrize(
    ("topology", "options", "count"),
    [
        ({"family": "polarfly", "q": 7}, {}, 112),
        ({"family": "polarfly", "q": 7}, {"decap": "switch"}, 90),
        ({"family": "polarfly", "q": 8}, {}, 162),
        (STAR, {}, 558),
    ],
    ids=["q7", "q7-switch", "q8", "polarstar"],
)
def test_every_single_failure_is_localised_by_the_fewest_probes(topology, options, count):
    found = probing(topology, options)
    assert len(found.probes) == found.fewest == count
    (build,) = found.builds
    crossed = [ends for probe in found.probes for ends in pairwise(probe.nodes)]
    far = build.wiring.far
    links = {(v, u) for v, row in enumerate(far.tolist()) for u in row if u >= 0}
    assert len(crossed) == len(links)
    assert set(crossed) == links
    most = 4 if not options else 5
    assert all(len({*p.nodes}) == len(p.nodes) <= most + 1 for p in found.probes)
    assert found.alike() == []
    everyone = {probe.number for probe in found.probes}
    names = build.wiring.names
    switches = [(v,) for v in range(len(names))]
    needed = lost_by(found)
    for dead in sorted(ends for ends in links if ends[0] < ends[1]) + switches:
        lost = needed[0, frozenset(dead)]
        told = found.localise(lost, everyone - lost)
        assert told.found == "-".join(names[v] for v in dead)
        assert told.candidates == (told.found,)


def test_planes_have_probes_of_their_own():
    found = probing({"family": "polarfly", "q": 3}, planes=2)
    assert [probe.plane for probe in found.probes] == [0] * 12 + [1] * 12
    everyone = {probe.number for probe in found.probes}
    lost = lost_without(found, 1, (4, 2))
    assert found.localise(lost, everyone - lost).found == "p2-2-p2-4"
    both = lost | lost_without(found, 0, (7, 12))
    told = found.localise(both, everyone - both)
    assert (told.found, told.candidates) == ("", ())
    assert {"p2-2-p2-4", "p1-7-p1-12"} <= set(told.parts)
    assert told.sentence() == "p1-7-p1-12 and p2-2-p2-4 are down"
    more = both | lost_without(found, 0, (0, 4)) | lost_without(found, 0, (5, 9))
    several = found.localise(more, everyone - more)
    assert (several.found, several.together) == ("", ())
    assert several.sentence().startswith("no single link or switch explains the report")


def test_a_report_that_does_not_tell_enough_names_all_candidates():
    found = probing({"family": "polarfly", "q": 3})
    everyone = {probe.number for probe in found.probes}
    lost = lost_without(found, 0, (2, 4))
    one = min(lost)
    alone = found.localise({one}, everyone - lost)
    assert "2-4" in alone.candidates
    told = found.localise({one}, ())
    assert told.found == ""
    assert "2-4" in told.candidates
    assert len(told.candidates) > 1
    assert told.sentence().startswith("one of these is down, the report does not say which: ")


def test_a_link_that_is_down_in_one_direction_only():
    found = probing({"family": "polarfly", "q": 3})
    everyone = {probe.number for probe in found.probes}
    (one,) = (p for p in found.probes if (2, 4) in pairwise(p.nodes))
    told = found.localise({one.number}, everyone - {one.number})
    assert (told.found, told.candidates) == ("", ())
    assert "2->4" in told.one_way
    assert len(told.one_way) == len(one.nodes) - 1
    assert "in this direction only, or the access link" in told.sentence()


def test_no_loss_and_losses_that_nothing_explains():
    found = probing({"family": "polarfly", "q": 3})
    everyone = {probe.number for probe in found.probes}
    assert found.localise((), everyone).sentence().startswith("no probe was lost")
    # Two probes that share nothing: all that they cross is crossed by others, which arrived.
    apart = next(
        {a.number, b.number}
        for a in found.probes
        for b in found.probes
        if not {*a.nodes} & {*b.nodes}
    )
    told = found.localise(apart, everyone - apart)
    assert (told.candidates, told.one_way, told.parts) == ((), (), ())
    assert told.sentence().startswith("no link or switch explains the report")


def test_elements_that_the_same_probes_cross_are_told():
    found = probing({"family": "polarfly", "q": 2})
    assert all(len(names) > 1 for names in found.alike())
    everyone = {probe.number for probe in found.probes}
    for dead in [(v,) for v in range(7)]:
        lost = lost_without(found, 0, dead)
        told = found.localise(lost, everyone - lost)
        alike = [names for names in found.alike() if str(dead[0]) in names]
        assert sorted(told.candidates) == sorted(alike[0] if alike else [str(dead[0])])


def test_probes_need_hosts_at_both_ends():
    with pytest.raises(InputError, match="hosts at every switch, where probes begin and end"):
        probing({"family": "oft", "q": 2})


SIDS = [f"fc00::{n}" for n in range(12)]
GOOD = "probe,result\n0,ok\n1,lost\n1,lost\n"


def read(tmp_path, text, name="report.csv"):
    (tmp_path / name).write_text(text)
    return ProbeReport.read(tmp_path / name, SIDS)


def test_reports_are_csv_or_json(tmp_path):
    rows = '[{"probe": 0, "result": "ok"}, {"probe": 1, "result": "lost"}]'
    for told in (
        read(tmp_path, GOOD),
        read(tmp_path, "result, probe ,rtt\nlost,1,\nok,0,0.2\n"),
        read(tmp_path, rows, "report.json"),
        read(tmp_path, "\ufeffprobe,sids,result\n0,fc00::0,ok\n1,,lost\n"),
    ):
        assert (told.lost, told.arrived) == ({1}, {0})


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.csv", "", ":1: required columns probe and result, given an empty file"),
        ("a.csv", "probe,result\n12,ok\n", ":2: probe: required a probe from 0 to 11, given 12"),
        ("a.csv", "probe,result\n1,ok\n1,lost\n", ":3: probe: required one result, given ok"),
        ("a.csv", f"probe,result\n{'9' * 5000},ok\n", ":2: probe: required a probe from 0 to 11"),
        ("a.csv", "probe,sids,result\n1,fc00::2,ok\n", ":2: sids: required fc00::1, the carrier"),
        ("a.json", f'[{{"probe": {"9" * 5000}}}]', ": required JSON"),
        ("a.json", "{", ":1: required JSON"),
    ],
)
def test_wrong_reports_are_told_with_their_line(tmp_path, name, text, told):
    with pytest.raises(InputError) as caught:
        read(tmp_path, text, name)
    assert told in str(caught.value)
    with pytest.raises(InputError, match=r"probes, given No such file or directory$"):
        ProbeReport.read(tmp_path / "none.csv", SIDS)
