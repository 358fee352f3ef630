"""What a fabric does, by the text of its Open vSwitch files and its cables alone.

Rows and groups are read by regular expressions, and packets are followed in numpy. It shares no
code with the emitter, the readers, the walker and the proof.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import ip_network

import numpy as np

MOST_LINKS = 24
ENTERING = 1 << 16
BACK = -1
"""An output to the port on which the packet came in."""
ROUTE = re.compile(r"table=1,.*ip_dst=([\d./]+),actions=write_metadata:(\d+)/0xffff,goto_table:2")
OWN = re.compile(r"table=1,.*ip_dst=([\d.]+),actions=set_field.*,output:(\d+)$")
CLASS = re.compile(
    r"table=2,priority=(\d+),cookie=\w+,(?:in_port=(\d+),)?metadata=(\d+)/(\w+),actions=group:(\d+)"
)
GROUP = re.compile(r"group_id=(\d+),type=(\w+),(.*)")


@dataclass
class SwitchText:
    """The rows and groups of one switch.

    routes: by prefix length, then by prefix, the class. rows: priority, in_port or None, metadata,
    mask, group. groups: type and (what is watched, where the bucket sends).
    """

    hosts: list[int] = field(default_factory=list)
    routes: dict[int, dict[int, int]] = field(default_factory=dict)
    rows: list[tuple[int, int | None, int, int, int]] = field(default_factory=list)
    groups: dict[int, tuple[str, list[tuple[str, str]]]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder):
        """The files of a switch; each row of tables 1 and 2 and each group is known."""
        found = cls()
        for line in (folder / "flows.txt").read_text().splitlines():
            if own := OWN.match(line):
                found.hosts.append(int(ip_network(own[1]).network_address))
            elif route := ROUTE.match(line):
                prefix = ip_network(route[1])
                of_length = found.routes.setdefault(prefix.prefixlen, {})
                of_length[int(prefix.network_address)] = int(route[2])
            elif row := CLASS.match(line):
                in_port = int(row[2]) if row[2] else None
                found.rows.append((int(row[1]), in_port, int(row[3]), int(row[4], 16), int(row[5])))
            else:
                assert not line.startswith(("table=1", "table=2")), line
        for line in (folder / "groups.txt").read_text().splitlines():
            if not line.startswith("#"):
                number, kind, buckets = GROUP.match(line).groups()
                found.groups[int(number)] = kind, [_bucket(b) for b in buckets.split("bucket=")[1:]]
        return found

    def class_of(self, address):
        """The class of an address by its longest prefix, None where there is no row."""
        for length in sorted(self.routes, reverse=True):
            found = self.routes[length].get(address >> 32 - length << 32 - length)
            if found is not None:
                return found
        return None

    def group_of(self, number, in_port, entering):
        """The group that a packet of a class is led to."""
        metadata = number | (ENTERING if entering else 0)
        rows = [
            row for row in self.rows if metadata & row[3] == row[2] and row[1] in (None, in_port)
        ]
        rows.sort(reverse=True, key=lambda row: row[0])
        assert len(rows) == 1 or rows[0][0] > rows[1][0], "two rows of one priority match"
        return rows[0][4]

    def ports(self, group):
        """The ports that it shares packets over, and those that it then tries in their order."""
        kind, buckets = self.groups[group]
        if kind == "select":
            assert all(watched == sent for watched, sent in buckets)
            return [int(sent) for _, sent in buckets], []
        shared, tried = [], []
        for watched, sent in buckets:
            if sent.startswith("group"):
                assert (sent, shared, tried) == (watched, [], [])
                shared, tried = self.ports(int(sent[5:]))
            else:
                assert sent in (watched, "in_port")
                tried.append(BACK if sent == "in_port" else int(sent))
        return shared, tried


def _bucket(text):
    words = text.rstrip(",").split(",")
    watched = next((re.split("[_:]", w)[1:] for w in words if w.startswith("watch_")), None)
    last = words[-1].removeprefix("actions=")
    sent = last.replace("output:", "").replace("group:", "group")
    if watched is None:  # an indirect group watches nothing
        return sent, sent
    return ("group" if watched[0] == "group" else "") + watched[1], sent


@dataclass
class Packets:
    """n packets: from, to, the port they left by, what is down, and the switches that they passed.

    down: int[n, 2], the ends of a link, or a switch twice. path: int[n, MOST_LINKS + 1], -1 beyond
    the last. arrived: bool[n].
    """

    source: np.ndarray
    target: np.ndarray
    down: np.ndarray
    path: np.ndarray
    arrived: np.ndarray

    @property
    def links(self):
        """int[n]: how many links they took."""
        return (self.path >= 0).sum(axis=1) - 1


class TextFabric:
    """The switches of a folder, cabled.

    Args:
        folder: what was rendered.
        names: of the switches, in the order of their numbers.
        far, far_port: int[S, P + 1], the switch and its port behind each port; -1 for none.
    """

    def __init__(self, folder, names, far, far_port):
        self.far, self.far_port = far, far_port
        texts = [SwitchText.read(folder / name) for name in names]
        self.ends = np.array([v for v, text in enumerate(texts) if text.hosts])
        most = max(row[2] & 0xFFFF for text in texts for row in text.rows) + 1
        size = len(texts), len(texts)
        self.number = np.full(size, -1)
        ports = far.shape[1]
        self.shared = np.zeros((len(texts), most, ports + 2), int)
        self.entry = np.zeros((len(texts), most, ports + 2), int)
        self.tried = np.zeros((len(texts), most, ports, ports + 2), int)
        for s, text in enumerate(texts):
            for d in self.ends:
                found = text.class_of(texts[d].hosts[0]) if s != d else None
                self.number[s, d] = -1 if found is None else found
            for c in np.unique(self.number[s][self.number[s] >= 0]):
                shared, tried = text.ports(text.group_of(c, None, entering=True))
                _put(self.shared[s, c], sorted(set(shared)))
                _put(self.entry[s, c], tried)
                for port in np.flatnonzero(far[s] >= 0):
                    shared, tried = text.ports(text.group_of(c, port, entering=False))
                    assert not shared
                    _put(self.tried[s, c, port], tried)

    def every_way(self):
        """The packets of every pair by every way, with nothing down."""
        s, d = (side.ravel() for side in np.meshgrid(self.ends, self.ends, indexing="ij"))
        s, d = s[s != d], d[s != d]
        return self._sent(s, d, np.full((len(s), 2), -2))

    def one_link_down(self, packets):
        """Those that have lost a link, for each of the links of each."""
        moves = np.argwhere(packets.path[:, 1:] >= 0)
        which, step = moves.T
        ends = np.column_stack((packets.path[which, step], packets.path[which, step + 1]))
        return self._again(packets, which, np.sort(ends, axis=1))

    def one_switch_down(self, packets):
        """Those that have lost a switch on their way, for each of these of each."""
        between = (packets.path >= 0) & (packets.path != packets.source[:, None])
        between &= packets.path != packets.target[:, None]
        which, step = np.argwhere(between).T
        gone = packets.path[which, step]
        return self._again(packets, which, np.column_stack((gone, gone)))

    def _again(self, packets, which, down):
        asked = np.unique(
            np.column_stack((packets.source[which], packets.target[which], down)), axis=0
        )
        return self._sent(asked[:, 0], asked[:, 1], asked[:, 2:])

    def _live(self, switch, port, down):
        far = np.where(port > 0, self.far[switch, np.maximum(port, 0)], -1)
        link = (np.minimum(switch, far) == down[..., 0]) & (np.maximum(switch, far) == down[..., 1])
        alone = (down[..., 0] == down[..., 1]) & ((far == down[..., 0]) | (switch == down[..., 0]))
        return (far >= 0) & ~link & ~alone

    def _first(self, switch, came, tried, down):
        """int[n]: the first port that is up, 0 for none, and where it sends back unsaid."""
        meant = np.where(tried == BACK, came[:, None], tried)
        live = self._live(switch[:, None], meant, down[:, None])
        place = live.argmax(axis=1)[:, None]
        out = np.take_along_axis(meant, place, axis=1)[:, 0]
        told = np.take_along_axis(tried, place, axis=1)[:, 0] == BACK
        return np.where(live.any(axis=1) & (told | (out != came)), out, 0)

    def _sent(self, s, d, down):
        """The packets of pairs (s, d) while something is down, by every way that is up."""
        row = s, self.number[s, d]
        shared = self.shared[row]
        live = self._live(s[:, None], shared, down[:, None])
        which, way = np.argwhere(live).T
        out = shared[which, way]
        alone = np.flatnonzero(~live.any(axis=1))
        entry = self._first(
            s[alone], np.zeros(len(alone), int), self.entry[row][alone], down[alone]
        )
        which, out = np.concatenate((which, alone)), np.concatenate((out, entry))
        return self._followed(s[which], d[which], out, down[which])

    def _followed(self, s, d, out, down):
        path = np.full((len(s), MOST_LINKS + 1), -1, np.int32)
        path[:, 0] = s
        at, out = s.copy(), out.copy()
        moving = np.flatnonzero(out > 0)
        for step in range(1, MOST_LINKS + 1):
            came = self.far_port[at[moving], out[moving]]
            at[moving] = path[moving, step] = self.far[at[moving], out[moving]]
            moving, came = (part[at[moving] != d[moving]] for part in (moving, came))
            if not len(moving):
                break
            here = at[moving]
            tried = self.tried[here, self.number[here, d[moving]], came]
            out[moving] = self._first(here, came, tried, down[moving])
            moving = moving[out[moving] > 0]
        return Packets(s, d, down, path, at == d)


def _put(row, ports):
    row[: len(ports)] = ports


def channels_needed(rank, *walks):
    """How many channels the packets need by valley, 0 where waits within them form a cycle.

    rank: int[S], of the switches.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    waits, most = [], 0
    for packets in walks:
        path, there = packets.path, packets.path >= 0
        up = rank[path[:, 1:]] > rank[path[:, :-1]]
        valley = np.pad(~up[:, :-1] & up[:, 1:] & there[:, 2:], ((0, 0), (1, 0)))
        channel = np.cumsum(valley, axis=1)
        most = max(most, 1 + int(channel.max()))
        arc = (channel * len(rank) + path[:, :-1]) * len(rank) + path[:, 1:]
        both = there[:, 2:]
        pairs = np.column_stack((arc[:, :-1][both], arc[:, 1:][both]))
        waits.append(np.unique(pairs, axis=0))
    arcs, ends = np.unique(np.concatenate(waits), return_inverse=True)
    ends = ends.reshape(-1, 2)
    graph = coo_array((np.ones(len(ends)), ends.T), shape=(len(arcs), len(arcs)))
    free = connected_components(graph, connection="strong")[0] == len(arcs)
    return most if free else 0
