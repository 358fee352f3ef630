"""The linux and frr targets: their files read back, golden files, refusals."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from compilers.targets.routed.static_routes import BuildRouters
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.routed import agreed, routed, with_words
from tests.compilers.targets.makers import IPV6, with_ipv6
from tests.vtysh import NEEDS_VTYSH, judged


def heavier(build):
    """The same with three times the weight on minimal ports."""
    weight = build.tables.classes.weight.copy()
    weight[..., 0] *= 3
    classes = replace(build.tables.classes, weight=weight)
    return replace(build, tables=replace(build.tables, classes=classes))


CASES = {
    "spread": routed(q=3, spread=True),
    "unequal": heavier(routed(q=3, spread=True)),
    "link": routed(q=3, protect="link"),
    "node and spread": routed(q=3, protect="node", spread=True),
    "oft": routed("oft", q=2, protect="link"),
    "polarstar": routed("polarstar", q=2, supernode="complete", degree=2, protect="link"),
}


@pytest.mark.parametrize(
    ("name", "case"),
    [
        *(("linux", case) for case in ("spread", "unequal", "link", "oft")),
        *(("frr", case) for case in ("unequal", "node and spread", "polarstar")),
    ],
)
def test_what_was_written_says_what_the_tables_say(name, case, tmp_path):
    build = with_ipv6(CASES[case])
    options = {"version": "10.7"} if (name, case) == ("frr", "unequal") else {}
    target(name).render(build, tmp_path, options=options)
    report = target(name).check_emitted(build, tmp_path, options)
    assert (report.examples, report.passed) == ((), True)


def test_no_prefix_of_a_switch_covers_another():
    """A table that lacks the longer one would take its packets."""
    build = with_ipv6(CASES["polarstar"])
    for vertex in range(build.tables.switches):
        found = sorted(
            build.addressing.network(int(p)) for p in BuildRouters.of(build).routes(vertex)[0]
        )
        assert not any(a.overlaps(b) for a, b in pairwise(found))


BOTH = {"spread": True, "protect": "link"}


@pytest.mark.parametrize(
    ("name", "golds", "policy", "options"),
    [
        ("linux", "linux_q2", BOTH, {}),
        ("frr", "frr_q2", BOTH, {}),
        ("frr", "frr_10.7_q2", BOTH, {"version": "10.7", "bfd": "on"}),
        ("frr", "frr_bgp_q2", {}, {"routing": "bgp", "bfd": "on"}),
    ],
)
def test_golden(name, golds, policy, options, tmp_path, golden):
    build = replace(with_ipv6(routed(q=2, hosts=2, **policy)), identity="0123456789abcdef")
    build, words = with_words(heavier(build) if "10.7" in golds else build, options)
    target(name).render(build, tmp_path, options=words, only=[3])
    for path in sorted((tmp_path / "3").iterdir()):
        if not options or path.name == "frr.conf":
            golden(path.read_text(), f"{golds}_{path.name}")


@NEEDS_VTYSH
@pytest.mark.parametrize(("case", "hosts"), [("protected", 2), ("bgp", 2), ("ties", 0)])
def test_vtysh_accepts_every_file(case, hosts, tmp_path):
    for ipv6 in (None, IPV6):
        family = {"ties": "pn"}.get(case, "polarfly")
        build = routed(family, q=2, hosts=hosts, **(BOTH if case == "protected" else {}))
        build = replace(build, addressing=replace(build.addressing, ipv6=ipv6))
        bgp = {"routing": "bgp", "bfd": "on"}
        options = bgp if case in ("bgp", "ties") else {}
        target("frr").render(agreed(build, options), tmp_path, only=[0, 5])
        for path in tmp_path.glob("*/frr.conf"):
            assert judged(path) == (0, "", "")


@pytest.mark.parametrize("name", ["a\nip route 0.0.0.0/0 Null0", "../x", "$(reboot)", "x" * 64])
@pytest.mark.parametrize("system", ["linux", "frr"])
def test_no_name_of_a_node_gets_into_a_file_unchecked(name, system, tmp_path):
    build = routed(q=2)
    wiring = replace(build.wiring, names=(name, *build.wiring.names[1:]))
    with pytest.raises(InputError, match="nodes: required a name of at most 63 letters"):
        target(system).render(replace(build, wiring=wiring), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["Ethernet1/1", "lo", "hosts", "eth1; reboot", "a" * 16, "."])
def test_no_interface_that_linux_has_not(name, tmp_path):
    build = routed(q=2)
    (ports,) = build.wiring.port_names
    wiring = replace(build.wiring, port_names=((name, *ports[1:]),))
    with pytest.raises(InputError, match=r"node_types\.generated.names: required interface names"):
        target("linux").render(replace(build, wiring=wiring), tmp_path / "out")


def test_frr_refuses_by_name_what_bgp_cannot_do(tmp_path):
    with pytest.raises(InputError) as error:
        target("frr").render(agreed(CASES["node and spread"], {"routing": "bgp"}), tmp_path / "out")
    text = str(error.value)
    assert "routing.protect: required none, as target frr with eBGP cannot do repair" in text
    assert not (tmp_path / "out").exists()


def test_frr_refuses_weights_that_static_routes_have_not(tmp_path):
    with pytest.raises(InputError, match=r"equal-cost, as target frr with version=8\.4 cannot"):
        target("frr").render(CASES["unequal"], tmp_path / "out")


def test_no_weight_that_the_kernel_has_not(tmp_path):
    build = CASES["spread"]
    weight = np.minimum(build.tables.classes.weight, 1) * np.uint16(257)
    tables = replace(build.tables, classes=replace(build.tables.classes, weight=weight))
    with pytest.raises(InputError, match=r"at most 256 for target linux, given .* of 257"):
        target("linux").render(replace(build, tables=tables), tmp_path)
