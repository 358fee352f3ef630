"""`system` and `routing.on_missing`: what is refused before compiling, and what is reduced."""

from dataclasses import replace

import pytest

from compilers.pipeline import compile_fabric
from compilers.policy_support import reduced_policy
from compilers.spec.balances import balance_named
from compilers.spec.fabric_file import load_fabric
from compilers.spec.features import PROTECT_NEEDS
from compilers.spec.target_names import SHIPPED_SYSTEMS
from compilers.targets.target_lookup import target
from compilers.wiring.placed_fabric import place_fabric
from inventory.problems import InputError

FABRIC = """
name: lab
topology: {{family: polarfly, q: 3}}
{systems}routing: {{balance: {balance}, protect: {protect}, on_missing: {on_missing}}}
addressing: {{ipv6: 'fd00::/48'}}
"""


def compiled(tmp_path, systems, balance="minimal", protect="none", on_missing="refuse", more=""):
    """A fabric whose nodes have these systems in turn."""
    file, (first, *others) = tmp_path / "fabric.yaml", systems.split(", ")
    systems = f"system: {first}\n" if first else ""
    if others:
        write_inventory(tmp_path, [first, *others])
        more += "inventory: inventory.yaml\n"
    text = FABRIC.format(systems=systems, balance=balance, protect=protect, on_missing=on_missing)
    file.write_text(text + more)
    return compile_fabric(load_fabric(file))


def write_inventory(folder, systems):
    nodes = "".join(
        f"  - {{name: n{n}, type: box, system: {systems[n % len(systems)]}}}\n" for n in range(13)
    )
    names = '{junos: "et-0/0/{port}"}'
    (folder / "inventory.yaml").write_text(
        "node_types:\n  box:\n    ports: [{name: 'eth{}', count: 8}]\n"
        f"    names: {names}\nnodes:\n{nodes}"
    )


@pytest.mark.parametrize("name", SHIPPED_SYSTEMS)
@pytest.mark.parametrize(("balance", "protect"), [("compact-valiant", "none"), ("minimal", "node")])
def test_what_compile_refuses_is_what_the_target_lacks(tmp_path, name, balance, protect):
    needs = balance_named(balance).forwarding.needs | PROTECT_NEEDS[protect]
    able = needs <= target(name).capabilities.features
    if able:
        build = compiled(tmp_path, name, balance, protect)
        assert (build.balance, build.forwarding.protect) == (balance, protect)
    else:
        with pytest.raises(
            InputError, match=rf"a policy that system {name} can do, given .* needs "
        ):
            compiled(tmp_path, name, balance, protect)


UNEQUAL = "compact-valiant, minimal_share: 1/2"


@pytest.mark.parametrize("name", SHIPPED_SYSTEMS)
def test_weights_that_render_refuses_are_refused_before(tmp_path, name):
    build = compiled(tmp_path, "", UNEQUAL)
    try:
        target(name).check(build)
    except InputError:
        with pytest.raises(
            InputError, match=rf"a policy that system {name} can do, given .* needs "
        ):
            compiled(tmp_path, name, UNEQUAL)
    else:
        compiled(tmp_path, name, UNEQUAL)


WITH_ROUTES = [(name, "static") for name in SHIPPED_SYSTEMS] + [
    (name, "ebgp") for name in SHIPPED_SYSTEMS if "routing" in target(name).agreements
]


@pytest.mark.parametrize(("name", "routes"), WITH_ROUTES)
def test_sharing_at_every_hop_is_refused_where_render_refuses_it(tmp_path, name, routes):
    """Routers share packets in transit with eBGP only; `system` was refused there, too."""
    text = (
        "name: lab\ntopology: {family: hyperx, sides: 3x3}\n"
        f"routing: {{balance: ecmp, transit: ecmp}}\ncontrol_plane: {{routes: {routes}}}\n"
    )
    file = tmp_path / "fabric.yaml"
    file.write_text(text)
    build = compile_fabric(load_fabric(file))
    file.write_text(f"{text}system: {name}\n")
    try:
        target(name).check(build)
    except InputError:
        with pytest.raises(InputError, match=rf"a policy that system {name} can do, given ecmp"):
            compile_fabric(load_fabric(file))
    else:
        assert compile_fabric(load_fabric(file)).forwarding.every_hop


def test_who_shares_nothing_is_not_told_about_weights(tmp_path):
    with pytest.raises(InputError) as error:
        compiled(tmp_path, "srlinux, frr", UNEQUAL)
    keys = [(p.key, "system srlinux" in p.required) for p in error.value.problems]
    assert keys == [("routing.balance", True), ("routing.minimal_share", False)]


def test_on_missing_minimal_makes_shares_equal(tmp_path):
    build = compiled(tmp_path, "frr, junos", UNEQUAL, on_missing="minimal")
    assert build.balance == "compact-valiant"
    assert build.policy["minimal_share"] == "equal-cost"
    assert build.policy["asked_minimal_share"] == "1/2"
    for name in ("frr", "junos"):
        of_one = replace(build, identity="0" * 16, systems=())
        target(name).render(of_one, tmp_path / name)


@pytest.mark.parametrize(
    ("systems", "balance", "protect", "left"),
    [
        ("frr", "compact-valiant, adjacent: bounce", "node", "compact-valiant"),
        ("frr", "valiant", "link", "minimal"),
        ("eos", "spread, minimal_share: 1/2", "none", "minimal"),
        ("junos, frr", "spread", "none", "minimal"),
        ("ovs", "spread", "link", "spread"),
    ],
)
def test_on_missing_minimal_reduces_what_ebgp_cannot_do(tmp_path, systems, balance, protect, left):
    more = "control_plane: {routes: ebgp}\n"
    build = compiled(tmp_path, systems, balance, protect, "minimal", more)
    assert build.balance == left
    assert build.forwarding.protect == ("link" if systems == "ovs" else "none")


def test_limits_of_targets_are_checked_on_the_tables(tmp_path):
    with pytest.raises(InputError, match="weights are at most 256 for target"):
        compiled(tmp_path, "linux", "compact-valiant, minimal_share: 0.999")


def test_the_message_names_system_line_and_way_out(tmp_path):
    with pytest.raises(InputError) as error:
        compiled(tmp_path, "linux, opensm, ovs", "compact-valiant", "link")
    first, second = map(str, error.value.problems)
    assert first.endswith(
        "fabric.yaml:5: routing.balance: required a policy that system opensm can do, given "
        "compact-valiant, which needs separate routes for packets from hosts and "
        "traffic shared over several ports; "
        "choose minimal, let `on_missing: minimal` do so, or choose another `system`"
    )
    assert "system opensm can do, given link, which needs repair in the switch; choose" in second


def test_on_missing_minimal_reduces_only_what_is_missing(tmp_path):
    build = compiled(tmp_path, "srv6", "compact-valiant", "link", "minimal")
    assert (build.balance, build.forwarding.protect) == ("compact-valiant", "none")
    assert build.policy["asked_protect"] == "link"
    assert "asked_balance" not in build.policy
    assert build.tables.classes.alternate.shape[2]
    assert not build.tables.classes.protection.shape[2]


def test_on_missing_minimal_for_node_types(tmp_path):
    (tmp_path / "inventory.yaml").write_text(
        "node_types:\n  plain:\n    ports: [{name: 'eth{}', count: 8}]\n"
        "    capabilities: [repair, ipv6]\ngenerate: {type: plain}\n"
    )
    more = "inventory: inventory.yaml\n"
    with pytest.raises(InputError, match=r"a type that can do weighted groups \(weights\)"):
        compiled(tmp_path, "", "compact-valiant", "link", more=more)
    build = compiled(tmp_path, "", "compact-valiant", "link", "minimal", more)
    assert (build.balance, build.forwarding.protect) == ("minimal", "link")
    able = (tmp_path / "inventory.yaml").read_text().replace("[repair, ipv6]", "[repair]")
    (tmp_path / "inventory.yaml").write_text(able)
    loaded = load_fabric(tmp_path / "fabric.yaml")
    assert reduced_policy(loaded.spec, place_fabric(loaded).inventory).protect == "link"


def test_where_nothing_is_missing_nothing_is_reduced(tmp_path):
    build = compiled(tmp_path, "frr, linux", "compact-valiant", "link", "minimal")
    assert (build.balance, build.forwarding.protect) == ("compact-valiant", "link")
    assert not any(word.startswith("asked") for word in build.policy)


def test_one_table_is_enough_where_packets_are_shared_at_every_hop(tmp_path):
    text = "name: lab\ntopology: {family: hyperx, sides: 3x3}\nsystem: bird\n"
    (tmp_path / "f.yaml").write_text(f"{text}routing: {{balance: ecmp, transit: ecmp}}\n")
    target("bird").check(compile_fabric(load_fabric(tmp_path / "f.yaml")))
    (tmp_path / "f.yaml").write_text(f"{text}routing: {{balance: ecmp}}\n")
    with pytest.raises(InputError, match="needs separate routes for packets from hosts"):
        compile_fabric(load_fabric(tmp_path / "f.yaml"))
