"""Find what a user has named: a switch, or the elements that fail together.

A user writes a node, a host, an address, a link such as `3-8`, or a group such as `module:A/0`. The
functions return vertices, or elements of `Program`: cables by their numbers, then switches.
`explain`, the rehearsals and the simulations call them.
"""

from __future__ import annotations

from ipaddress import ip_address

from compilers.proof.failures.risk_cases import elements_of_group
from compilers.tables.build import Build
from compilers.wiring.shared_risk import GROUP_KINDS, rack_hint, resolve_name
from inventory.problems import InputError, did_you_mean


def find_switch(build: Build, name: str | int, key: str = "", todo: str = "") -> int:
    """The vertex that a name, a number or an address stands for.

    Args:
        build: its nodes, hosts and addresses are searched.
        name: the name of a node, a vertex number, the name of a host, or an address.
        key: names the option or argument in the error.
        todo: what the error advises; "" to suggest a similar name.

    Raises:
        InputError: the fabric has none of these.
    """
    wiring, text = build.wiring, str(name)
    if text in wiring.names:
        return wiring.names.index(text)
    if text.isdecimal() and int(text) < len(wiring.names):
        return int(text)
    if text in wiring.host_names:
        return wiring.host_names.index(text) // int(wiring.host_port.shape[1])
    if (vertex := _by_address(build, text)) is not None:
        return vertex
    raise InputError.of(
        required="a node, a vertex number, a host or an address of the fabric",
        given=text,
        key=key,
        todo=todo
        or did_you_mean(
            text, wiring.names + wiring.host_names, f"vertices are 0..{len(wiring.names) - 1}"
        ),
    )


def _by_address(build: Build, text: str) -> int | None:
    """The vertex with an address; None if the text is no address, or no address of the fabric."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return build.addressing.vertex(address)


def find_failures(build: Build, name: str) -> tuple[int, ...]:
    """The elements of `Program` that a name stands for.

    Args:
        build: has links, nodes and groups.
        name: of a link, `A-B`, or of a node, or of a group, such as `module:A/0`
            (`compilers.wiring.shared_risk`).

    Raises:
        InputError: the build has no such link, node or group.
    """
    parts = name.split(":")
    if len(parts) == 2 and {*parts} <= {*build.wiring.names}:
        required, todo = "a node, or a link as two nodes that it joins", f"write {'-'.join(parts)}"
        raise InputError.of(required, name, todo)
    if "-" not in name and parts[0] not in GROUP_KINDS:
        # It can only be a node. Racks are written `rack:NAME`, so for one the error says this.
        todo = rack_hint(build.hardware, name)
        return (len(build.wiring.link_ends()) + find_switch(build, name, todo=todo),)
    return elements_of_group(build, resolve_name(build.wiring, build.hardware, name))


def find_failure(build: Build, name: str) -> int:
    """The link `A-B`, or the node of this name, as one element of `Program`.

    Raises:
        InputError: there is no such node or link.
    """
    failed_elements = find_failures(build, name)
    if len(failed_elements) != 1:
        raise InputError.of("a node, or a link as two nodes that it joins, such as 3-8", name)
    return failed_elements[0]
