"""Figure 15 of the PolarFly paper: the optical ports that a node costs (§IX).

`port_costs` reproduces the figure and returns its claims as `Evidence`; `polarfly_paper` lists it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log2

from compilers.drawing.plots import Curve, Panel
from compilers.evaluation.analysis.link_load import uniform
from compilers.evaluation.comparison.prices import prices
from compilers.topology.labelled_graph import Topology
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.polarfly.polarfly_networks import TABLE_V

TABLE_V_PUT_IN = "Input, not a result: Table V's endpoints divided by the mean degree."
"""Where the ratios of injection to bandwidth come from."""
NODES = 1024
"""The nodes of figure 15, each of which is a host."""
NODES_PER_SWITCH = 2
"""The nodes of an edge switch of figure 15's fat tree."""
FAT_TREE_LEVELS = int(log2(NODES // NODES_PER_SWITCH)) + 1
"""The levels of figure 15's fat tree; the topmost has half as many switches as each other one."""
INJECTION_PORTS = 16
"""The optical ports of a node of figure 15."""


def port_costs(_quick: bool) -> Evidence:
    """Figure 15: optical ports for each of 1,024 nodes at the load that it sustains.

    A switch of PolarFly and of Slim Fly has as many hosts as fill its fullest link under uniform
    traffic. Our tables do not take Dragonfly's usual routes, so it has the hosts of Table V.
    """
    price = prices()
    topologies = {name: TABLE_V[name].topology() for name in ("PF", "SF", "DF1")}
    degree = {
        name: 2 * topology.graph.size / topology.graph.order
        for name, topology in topologies.items()
    }
    ports = _ports_per_node(topologies, degree)
    uniform_cost = {name: count / ports["PolarFly"] for name, count in ports.items()}
    # A fat tree costs more for permutations by the quotient of the two networks' saturation loads.
    permutation_cost = {
        **uniform_cost,
        "Fat tree": uniform_cost["Fat tree"]
        * price.saturation_permutation_direct
        / price.saturation_permutation_indirect,
    }
    hosts_per_link = {name: TABLE_V[name].hosts / degree[name] for name in topologies}
    claims = (
        *_injection_claims(hosts_per_link, price.links_per_module),
        *_cost_claims(uniform_cost, permutation_cost),
    )
    rows = tuple(
        (name, count, uniform_cost[name], permutation_cost[name]) for name, count in ports.items()
    )
    panels = tuple(
        Panel(f"Cost per node, {title}", "", "times PolarFly", _bars(costs), steps=True)
        for title, costs in (
            ("uniform traffic", uniform_cost),
            ("permutations", permutation_cost),
        )
    )
    heads = ("network", "optical ports a node", "uniform", "permutations")
    setup = (
        "Endpoints of a router: in PolarFly and Slim Fly as many as fill the fullest link under"
        " uniform traffic, in Dragonfly Table V's six. Under permutations a fat tree is taken to"
        " saturate at 90 %, and the others at 50 %, as the paper says.",
    )
    return Evidence(claims, columns=heads, rows=rows, panels=panels, setup=setup)


def _cost_claims(
    uniform_cost: Mapping[str, float], permutation_cost: Mapping[str, float]
) -> tuple[PaperClaim, ...]:
    """The claims on what a node costs, by network, in multiples of a node of PolarFly.

    Args:
        uniform_cost: the costs at the load of uniform traffic that each network sustains.
        permutation_cost: the costs at the load of permutations.
    """
    return (
        PaperClaim(
            statement=f"Fat tree of {NODES:,} nodes, {NODES_PER_SWITCH} a switch, by formula:"
            " levels",
            printed=10,
            computed=FAT_TREE_LEVELS,
        ),
        PaperClaim(
            statement="Fat tree, uniform traffic: 5.19 times PolarFly",
            printed=5.19,
            computed=uniform_cost["Fat tree"],
            rounding=0.005,
            reason="The paper prints no formula. A node of the fat tree has 168 ports, one of"
            " PolarFly 32. The loads that the paper divides by are not printed exactly.",
        ),
        PaperClaim(
            statement="Fat tree, permutations: 2.68 times",
            printed=2.68,
            computed=permutation_cost["Fat tree"],
            rounding=0.005,
            reason="The saturations, 50 and 90 %, are the paper's. Their quotient is 1.8; that of"
            " the two printed ratios is 1.94.",
        ),
        PaperClaim(
            statement="Slim Fly: about 20 % more",
            printed=1.2,
            computed=uniform_cost["Slim Fly"],
            reading_error=0.05,
            reason="The paper prints no formula. Ours divides ports by the hosts that fill the"
            " fullest link. In §XII PolarFly is cost-effective by up to 10 % beside Slim Fly.",
        ),
    )


def _ports_per_node(
    topologies: Mapping[str, Topology], degree: Mapping[str, float]
) -> dict[str, float]:
    """The optical ports for each node, by network.

    A link is as wide as the injection of a node, `INJECTION_PORTS` ports. In a direct network the
    links of a switch are shared by its hosts. In the fat tree the ports of two links count for each
    switch, and the ports of injection for each node.

    Args:
        topologies: the direct networks, by their abbreviations.
        degree: the mean degree of each.
    """
    hosts = {name: uniform(topologies[name]).full_throughput_hosts for name in ("PF", "SF")}
    hosts["DF1"] = TABLE_V["DF1"].hosts
    edge_switches = NODES // NODES_PER_SWITCH
    switches = (FAT_TREE_LEVELS - 1) * edge_switches + edge_switches // 2
    ports_per_host = {name: INJECTION_PORTS * degree[name] / hosts[name] for name in hosts}
    return {
        "PolarFly": ports_per_host["PF"],
        "Slim Fly": ports_per_host["SF"],
        "Dragonfly": ports_per_host["DF1"],
        "Fat tree": (switches * 2 * INJECTION_PORTS + NODES * INJECTION_PORTS) / NODES,
    }


def _injection_claims(
    hosts_per_link: Mapping[str, float], links_per_module: float
) -> tuple[PaperClaim, ...]:
    """The claims of figure 15 about the ports of injection.

    Args:
        hosts_per_link: the hosts of a switch over its degree, by the abbreviation of the network.
        links_per_module: the optical ports of a module.
    """
    return (
        PaperClaim(
            statement="PolarFly: injection over all bandwidth, 1:2",
            printed=1 / 2,
            computed=hosts_per_link["PF"],
            is_input=True,
            reason=TABLE_V_PUT_IN,
        ),
        PaperClaim(
            statement="Slim Fly: 1:2",
            printed=1 / 2,
            computed=hosts_per_link["SF"],
            is_input=True,
            reason=TABLE_V_PUT_IN,
        ),
        PaperClaim(
            statement="Dragonfly: 1:3",
            printed=1 / 3,
            computed=hosts_per_link["DF1"],
            is_input=True,
            reason=TABLE_V_PUT_IN,
        ),
        *(
            PaperClaim(
                statement=f"{name}: {printed} modules of 8 ports a node",
                printed=printed,
                computed=ceil(INJECTION_PORTS / hosts_per_link[short_name] / links_per_module),
                interpretation="With as many endpoints for a link as in Table V, and"
                f" {INJECTION_PORTS} ports of injection.",
            )
            for name, short_name, printed in (
                ("PolarFly", "PF", 4),
                ("Slim Fly", "SF", 4),
                ("Dragonfly", "DF1", 6),
            )
        ),
    )


def _bars(values: Mapping[str, float]) -> tuple[Curve, ...]:
    """A bar for each value, as curves with steps."""
    return tuple(
        Curve(name, (position - 0.4, position + 0.4), (value,))
        for position, (name, value) in enumerate(values.items())
    )
