"""More ports on made-up nodes, so that a fabric without an inventory can grow."""

from __future__ import annotations

from dataclasses import replace

from compilers.expansion.spare_ports import Spare, needed, room
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.hardware import Hardware, port_facts
from compilers.wiring.wiring import GENERATED, Wiring, generated_type


def with_ports(wiring: Wiring, known: Hardware, expansion: Expansion) -> tuple[Wiring, Hardware]:
    """The wiring and the hardware, where it is made up, with ports for an expansion.

    They come behind those that there are, so that no plug is moved.
    """
    if wiring.type_names != (GENERATED,):
        return wiring, known
    spare = Spare.of(wiring, known.types)
    more = int((needed(expansion) - room(spare, expansion, wiring)).max(initial=0))
    if more == 0:
        return wiring, known
    roles = known.types[0].role
    hosts = roles.count("host")
    links = roles.index("host") if hosts else len(roles)
    behind = len(roles) - links - hosts
    facts = port_facts(GENERATED, generated_type(links, hosts, behind + more))
    names = (tuple(sockets[0] for sockets in facts.sockets),)
    return replace(wiring, port_names=names), replace(known, types=(facts,))
