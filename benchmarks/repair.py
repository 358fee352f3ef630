"""Processor time of a link repair, from the port-status message to the last byte queued.

The simulated switches hold their programs when they connect, confirm everything at once and keep
nothing, so only the controller is timed: link state, new tables, rounds, messages, sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from time import process_time

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import Timing, balance_option, compiled, print_timings, q_option
from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import repair_tables
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load
from compilers.targets.openflow.bundled_blocks import fields_at
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.group_and_flow_bytes import BUNDLE
from compilers.targets.openflow.message_parts import Block, bundle_control
from compilers.targets.openflow.protocol import (
    BUNDLED,
    DESCRIPTION,
    FLOW_MOD,
    FLOW_STATS,
    GROUP_DESC,
    GROUP_MOD,
    HEADER,
    MORE_PARTS,
    MULTIPART,
    PORT_DOWN,
    PORT_MODIFIED,
    PORT_STATUS,
    Bundle,
    MessageType,
    Multipart,
    WireLayout,
    header,
    message,
)
from controller.settings import Damping, Duties
from controller.switches.connections.sending import Outbox
from controller.switches.conversation import COMMIT
from controller.switches.current import current_of
from controller.switches.session import LiveFabric
from controller.upkeep.repair_keeper import Keeper
from polarfab.output.verb_output import json_option

PART_BYTES = 60_000
"""Bytes of a part of a reply."""
LINKS_TIMED, REPAIR_REPEATS = 12, 5
"""Links that are timed, and how often each is."""


@click.command("repair")
@q_option(31)
@balance_option
@json_option
def command(q: int, balance: str, as_json: bool) -> None:
    """Time a dead link in PolarFly, from the port-status message to the last byte queued.

    Over switches that confirm at once: it is the controller alone that is timed, by processor time.
    """
    with compiled(q, balance) as build:
        timings = repair_timings(load(build))
    print_timings(as_json, f"PolarFly q={q}: a dead link", "times the tables", timings)


def repair_timings(build: Build) -> list[Timing]:
    """Time a link's death and return, for links spread over the fabric; the best of a few runs.

    Raises:
        ValueError: the build was never saved, so it has no identity.
    """
    encoder = Encoder(build)
    outbox = Outbox()
    fabric = LiveFabric(current_of(build, encoder), _names, send=outbox)
    keeper = Keeper(fabric, Duties(damping=Damping(suppress=1e9)))
    for vertex, datapath_id in enumerate(build.wiring.datapath_id.tolist()):
        fabric.connected(vertex, datapath_id)
    _confirm(fabric, outbox, encoder)
    if not fabric.complete:
        raise ValueError("simulated switches that do not hold their programs")
    intact, best_times = IntactBuild.of(build), []
    switch, link = build.wiring.links()
    for number in np.linspace(0, len(switch) - 1, LINKS_TIMED).astype(int).tolist():
        end, port = int(switch[number]), int(build.wiring.port[switch[number], link[number]])
        times = []
        for _ in range(REPAIR_REPEATS):
            down = _timed(fabric, outbox, end, port, up=False)
            tables = _tables(intact, keeper.dead)
            times.append((tables, down, _timed(fabric, outbox, end, port, up=True)))
        best_times.append(np.min(times, axis=0))
    tables, down, up = np.transpose(best_times).tolist()
    base = median(tables)
    rows = {
        "the new tables": base,
        "a dead link": median(down),
        "the slowest of these": max(down),
        "a link that is back": median(up),
    }
    return [Timing(what, seconds, seconds / base) for what, seconds in rows.items()]


def _names(type_: int, code: int) -> tuple[str, str]:
    """An error's type and code, as the framework would name them."""
    return str(type_), str(code)


def _tables(intact: IntactBuild, dead: NDArray[np.bool_]) -> float:
    """Seconds to compute the tables around dead links."""
    start = process_time()
    repair_tables(intact, dead)
    return process_time() - start


def _timed(fabric: LiveFabric, outbox: Outbox, vertex: int, port: int, up: bool) -> float:
    """Seconds from the report that a port is down, or up, to the last byte queued."""
    body = PORT_STATUS.pack(reason=PORT_MODIFIED, port=port, state=0 if up else PORT_DOWN)
    status = message(MessageType.PORT_STATUS, 0, body)
    start = process_time()
    fabric.received(vertex, status)
    _confirm(fabric, outbox)
    return process_time() - start


def _confirm(fabric: LiveFabric, outbox: Outbox, encoder: Encoder | None = None) -> None:
    """Answer messages until the outbox stays empty.

    Args:
        fabric: gets the answers.
        outbox: has the messages.
        encoder: of the programs that switches hold; None where they hold nothing.
    """
    sent = outbox.take()
    while sent:
        for request in sent:
            program = encoder.program(int(str(request.key)), 0) if encoder else None
            for answer in _answers(request.data or b"", program):
                fabric.received(request.key, answer)
        sent = outbox.take()


def _answers(sent: bytes, program: FlowProgram | None) -> Iterator[bytes]:
    """What a switch with this program answers to a message."""
    kind, _, xid = header(sent)
    if kind == MessageType.MULTIPART_REQUEST:
        yield from _replies(MULTIPART.read(sent, HEADER.size).kind, xid, program)
    elif kind == MessageType.BARRIER_REQUEST:
        yield message(MessageType.BARRIER_REPLY, xid)
    elif sent.startswith(COMMIT):
        yield bundle_control(Bundle.COMMIT_REPLY, BUNDLE, xid)
        yield message(MessageType.BARRIER_REPLY, header(sent, len(COMMIT))[2])


def _replies(kind: int, xid: int, program: FlowProgram | None) -> Iterator[bytes]:
    """The parts of the reply to a multipart request of this kind."""
    body = b""
    if kind == Multipart.DESC:
        body = DESCRIPTION.pack(hardware=b"Open vSwitch")
    elif program and kind == Multipart.FLOW:
        body = b"".join(_reported(block, FLOW_MOD, FLOW_STATS) for block in program.flows)
    elif program and kind == Multipart.GROUP_DESC:
        body = b"".join(_reported(block, GROUP_MOD, GROUP_DESC) for block in program.groups)
    for first in range(0, max(len(body), 1), PART_BYTES):
        has_more = first + PART_BYTES < len(body)
        head = MULTIPART.pack(kind=kind, flags=MORE_PARTS if has_more else 0)
        part = body[first : first + PART_BYTES]
        yield message(MessageType.MULTIPART_REPLY, xid, head + part)


def _reported(block: Block, layout: WireLayout, form: WireLayout) -> bytes:
    """What is added, as a switch that holds it reports it.

    Args:
        block: messages that add it, in a bundle.
        layout: of these messages.
        form: the layout of an entry of the reply.
    """
    added, rest = fields_at(block, layout, BUNDLED), block[:, BUNDLED + layout.size :]
    entries = np.zeros((len(block), form.size + rest.shape[1]), np.uint8)
    head = fields_at(entries, form)
    for name in form.formats.keys() & layout.formats.keys():
        head[name] = added[name]
    head["length"] = entries.shape[1]
    entries[:, form.size :] = rest
    return entries.tobytes()
