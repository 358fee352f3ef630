"""Fabrics with lossless priorities, rendered once for a module of tests."""

from dataclasses import replace
from graphlib import TopologicalSorter

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.targets.target_lookup import target

INVENTORY = """
node_types:
  box:
    ports: [{{name: "b{{}}", count: 8, {port}}}]
    names: {{sonic: "Ethernet{{serdes}}", eos: "Ethernet{{cage}}/1"}}
    {buffer}
generate: {{type: box, name: "leaf{{}}"}}
"""
PORT = "speed: 100, lanes: 4, mtu: 9100"
BUFFER = (
    "buffer: {priorities: [3, 4], size: 33554432, cell: 256, cable: 40, reaction: 1500, "
    "ecn_min: 1048576, ecn_max: 2097152, ecn_percent: 5}"
)
POLARFLY = "{family: polarfly, q: 3}"
IQ = "{family: polarstar, supernode: inductive-quad, q: 2, degree: 3}"


def compiled(folder, balance="minimal", port=PORT, buffer=BUFFER, topology=POLARFLY):
    folder.mkdir(exist_ok=True)
    (folder / "inventory.yaml").write_text(INVENTORY.format(port=port, buffer=buffer))
    (folder / "fabric.yaml").write_text(
        f"name: lab\ntopology: {topology}\ninventory: inventory.yaml\n"
        f"hosts_per_node: 2\nrouting: {{balance: {balance}}}\n"
        'addressing: {ipv6: "fd00::/48"}\n'
    )
    return replace(compile_fabric(load_fabric(folder / "fabric.yaml")), identity="0" * 16)


def rendered_once(tmp_path_factory):
    """By scheme and balance: the build and the folder of the files, sonic's or eos's."""
    known = {}

    def of(scheme, balance):
        if (scheme, balance) not in known:
            folder = tmp_path_factory.mktemp(f"{scheme}-{balance}")
            build = compiled(folder, balance)
            system(scheme).render(build, folder / "out", options={"lossless": scheme})
            known[scheme, balance] = build, folder / "out"
        return known[scheme, balance]

    return of


def system(scheme):
    return target("eos" if scheme == "pairs" else "sonic")


def order(waits):
    return list(TopologicalSorter(waits).static_order())
