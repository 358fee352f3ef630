"""A middlebox between switches and their controller that delays, cuts, garbles and refuses."""

from __future__ import annotations

import asyncio
import random
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass, field

ERROR, EXPERIMENTER, FEATURES_REPLY, FLOW_MOD, GROUP_MOD, BARRIER_REQUEST = 1, 4, 6, 14, 15, 20
ONF, CONTROL, ADD = 0x4F4E4600, 2300, 2301
OPEN, COMMIT = 0, 4
DELETE, EVERY_GROUP = 2, 0xFFFFFFFC
"""The command of a group-mod, and the number that means all groups."""
COUNTED = {
    "flow-mod": (FLOW_MOD, None),
    "group-mod": (GROUP_MOD, None),
    "open": (CONTROL, OPEN),
    "commit": (CONTROL, COMMIT),
    "barrier": (BARRIER_REQUEST, None),
}
"""What a fault may be about: the message, or that in a bundle, and what is asked of the bundle."""
REFUSALS = {FLOW_MOD: (5, 1), GROUP_MOD: (6, 3), CONTROL: (0xFFFF, 2304), BARRIER_REQUEST: (1, 6)}
"""The type and code of the error: table full, out of groups, out of bundles, is a slave."""
CHUNK, SLOW = 1 << 16, 0.005
LASTING = ("slow", "hang")


@dataclass(slots=True)
class Fault:
    """What is done to a switch's connection, once `after` messages have passed.

    what: slow (all that follows), cut, truncate (half of a message, then cut), flip (bits of the
    next messages), swallow (one message), hang (nothing passes any more, either way, and no end is
    closed), refuse (an error in the place of a switch). counted: the
    messages that count, one of `COUNTED`, or any. Afterwards it is spent.
    """

    what: str
    to_switch: bool
    after: int
    counted: str = "any"
    seed: int = 0
    left: int = 3
    """Messages that are garbled."""


@dataclass(slots=True, eq=False)
class _Line:
    """A switch's connection and ours to the controller; tainted: it carried something wrong."""

    switch: asyncio.StreamWriter
    controller: asyncio.StreamWriter
    datapath_id: int = 0
    tainted: bool = False

    def close(self) -> None:
        for end in (self.switch, self.controller):
            end.close()


@dataclass(slots=True)
class FewGroups:
    """A switch that holds so many groups at most, counted at its connection.

    What a bundle would add beyond that is refused, as Open vSwitch refuses it (OFPGMFC 3).
    """

    most: int
    held: set[int]
    """The numbers of the groups that it holds, of whatever app."""
    _after: set[int] = field(default_factory=set)
    """What it holds once the bundle is committed."""

    def refuses(self, message: bytes) -> bool:
        """Whether this message to the switch adds a group too many; else it is counted."""
        kind, asked = _about(message)
        if (kind, asked) == (CONTROL, OPEN):
            self._after = set(self.held)
        elif (kind, asked) == (CONTROL, COMMIT):
            self.held = set(self._after)
        elif kind == GROUP_MOD and message[1] == EXPERIMENTER:
            command, number = struct.unpack_from("!HxxI", message, 32)
            if command == DELETE:
                self._after -= self._after if number == EVERY_GROUP else {number}
            elif number not in self._after and len(self._after) >= self.most:
                return True
            else:
                self._after.add(number)
        return False


class _Cut(Exception):
    """The connection is to end here."""


@dataclass(slots=True)
class Meddler:
    """Listens on a port of loopback and passes everything to another, but for the faults.

    papers: its certificate there, which names all switches, or None without TLS; switches come
    without. done counts what faults have really done: some wait for a message that never comes.
    """

    port: int
    controller: int
    papers: ssl.SSLContext | None
    done: Counter[str] = field(default_factory=Counter)
    few_groups: dict[int, FewGroups] = field(default_factory=dict)
    """Switches with a small group table, by datapath id."""
    _faults: dict[int, list[Fault]] = field(default_factory=dict)
    _away: Container[int] = ()
    _lines: set[_Line] = field(default_factory=set)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _thread: threading.Thread = field(init=False)
    _server: asyncio.Server = field(init=False)

    def __enter__(self) -> Meddler:
        """In a thread, and in the network namespace of the one that calls."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        server = asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self._server = asyncio.run_coroutine_threadsafe(server, self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def meddle(self, datapath_id: int, fault: Fault) -> None:
        """From now on, until `heal`."""
        self._faults.setdefault(datapath_id, []).append(fault)

    def cut(self, *datapath_ids: int) -> None:
        """End the connections of these switches."""
        self._end(lambda line: line.datapath_id in datapath_ids)

    def management(self, away: Container[int] = ()) -> None:
        """These switches have no management network from now on, and all others have theirs.

        Nothing passes, and no end is closed: what is under way arrives later, as with TCP.
        """
        self._away = away

    def heal(self) -> None:
        """No faults any more; connections that have carried anything wrong end."""
        self._faults.clear()
        self._end(lambda line: line.tainted)

    def _end(self, chosen) -> None:
        def end() -> None:
            for line in filter(chosen, list(self._lines)):
                line.close()

        self._loop.call_soon_threadsafe(end)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _finish(self) -> None:
        self._server.close()
        self._away = ()  # what holds their messages back ends
        for line in self._lines:
            line.close()
        if tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(tasks, timeout=20)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            back, forth = await asyncio.open_connection(
                "127.0.0.1", self.controller, ssl=self.papers
            )
        except OSError:
            writer.close()
            return
        line = _Line(writer, forth)
        self._lines.add(line)
        pumps = self._pump(line, reader, True), self._pump(line, back, False)
        running = [asyncio.ensure_future(pump) for pump in pumps]
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        line.close()
        self._lines.discard(line)
        await asyncio.wait(running, timeout=5)

    async def _pump(self, line: _Line, reader: asyncio.StreamReader, up: bool) -> None:
        to, rest = (line.controller if up else line.switch), b""
        with suppress(OSError, _Cut):
            while data := await reader.read(CHUNK):
                rest += data
                out = []
                try:
                    while len(rest) >= 8 and len(rest) >= (size := max(8, _length(rest))):
                        message, rest = rest[:size], rest[size:]
                        if up and message[1] == FEATURES_REPLY and not line.datapath_id:
                            line.datapath_id = int.from_bytes(message[8:16], "big")
                        await self._pass(line, message, not up, out)
                finally:
                    to.write(b"".join(out))
                    await to.drain()

    async def _pass(self, line: _Line, message: bytes, to_switch: bool, out: list[bytes]) -> None:
        """Append to `out` what becomes of a message."""
        while line.datapath_id in self._away:
            await asyncio.sleep(SLOW)
        few = self.few_groups.get(line.datapath_id) if to_switch else None
        if few is not None and few.refuses(message):
            line.controller.write(_refusal(message))
            return
        for fault in list(self._faults.get(line.datapath_id, ())):
            hangs = fault.what == "hang"
            if (not hangs and fault.to_switch != to_switch) or not _counts(fault.counted, message):
                continue
            if fault.after:
                fault.after -= 1
                continue
            if fault.what not in LASTING and not (fault.what == "flip" and fault.left > 1):
                self._faults[line.datapath_id].remove(fault)
            self.done[fault.what] += 1
            if fault.what == "slow":
                await asyncio.sleep(SLOW)
                continue
            line.tainted |= fault.what != "refuse"
            if fault.what == "cut":
                raise _Cut
            if fault.what == "truncate":
                out.append(message[: len(message) // 2])
                raise _Cut
            if fault.what in ("swallow", "hang"):
                return
            if fault.what == "refuse":
                line.controller.write(_refusal(message))
                return
            fault.left -= 1
            message = _flipped(message, fault.seed + fault.left)
        out.append(message)


def _length(data: bytes) -> int:
    return int.from_bytes(data[2:4], "big")


def _about(message: bytes) -> tuple[int, int | None]:
    """The kind of a message, or of that which it adds to a bundle; what is asked of a bundle."""
    if message[1] != EXPERIMENTER or len(message) < 24:
        return message[1], None
    vendor, kind, _, control = struct.unpack_from("!IIIH", message, 8)
    if (vendor, kind) == (ONF, ADD):
        return message[25], None
    return (CONTROL, control) if (vendor, kind) == (ONF, CONTROL) else (EXPERIMENTER, None)


def _counts(counted: str, message: bytes) -> bool:
    return counted == "any" or _about(message) == COUNTED[counted]


def _refusal(message: bytes) -> bytes:
    kind, code = REFUSALS[_about(message)[0]]
    quoted = message[:64]
    if kind == 0xFFFF:
        body = struct.pack("!HHI", kind, code, ONF) + quoted
    else:
        body = struct.pack("!HH", kind, code) + quoted
    return struct.pack("!BBH", 4, ERROR, 8 + len(body)) + message[4:8] + body


def _flipped(message: bytes, seed: int) -> bytes:
    chance, garbled = random.Random(seed), bytearray(message)  # noqa: S311
    for _ in range(chance.randint(1, 4)):
        garbled[chance.randrange(len(garbled))] ^= 1 << chance.randrange(8)
    return bytes(garbled)
