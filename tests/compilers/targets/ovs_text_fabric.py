"""What a fabric does, by the text of its Open vSwitch files and its cables alone.

Rows and groups are read by regular expressions, and packets are followed in numpy. It shares no
code with the emitter, the readers, the walker and the proof.

What a switch does with a packet follows from the switch, the port that it came in on, and where it
goes. So packets that are in all of that alike when they meet a failure are followed once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import ip_network

import numpy as np

MOST_LINKS = 24
ENTERING, MARKED = 1 << 16, 1 << 17
BACK = -1
"""An output to the port on which the packet came in."""
UNMARK = re.compile(
    r"table=0,priority=1,cookie=\w+,ip,eth_dst=(\S+?),actions=dec_ttl,"
    r"set_field:(\S+?)->eth_dst,write_metadata:0x20000/0x20000,goto_table:1$"
)
PASS = re.compile(r"table=0,priority=1,cookie=\w+,ip,eth_dst=(\S+?),actions=dec_ttl,goto_table:1$")
ROUTE = re.compile(r"table=1,.*ip_dst=([\d./]+),actions=write_metadata:(\d+)/0x4?ffff,goto_table:2")
OWN = re.compile(r"table=1,.*ip_dst=([\d.]+),actions=set_field.*,output:(\d+)$")
CLASS = re.compile(
    r"table=2,priority=(\d+),cookie=\w+,(?:in_port=(\d+),)?metadata=(\d+)/(\w+),"
    r"actions=(?:group:(\d+)|bundle\([^()]*,members:([\d,]+)\))$"
)
GROUP = re.compile(r"group_id=(\d+),type=(\w+),(.*)")


@dataclass
class SwitchText:
    """The rows and groups of one switch.

    routes: by prefix length, then by prefix, the class. rows: priority, in_port or None, metadata,
    mask, and a group or the ports of a bundle. groups: type and
    (what is watched, where the bucket sends, the address that it sets). unmark: the address of
    marked packets, and what they get.
    """

    hosts: list[int] = field(default_factory=list)
    routes: dict[int, dict[int, int]] = field(default_factory=dict)
    rows: list[tuple[int, int | None, int, int, int | list[int]]] = field(default_factory=list)
    groups: dict[int, tuple[str, list[tuple[str, str, str]]]] = field(default_factory=dict)
    unmark: tuple[str, str] = ("", "")
    gateway: str = ""

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
                to = int(row[5]) if row[5] else [*map(int, row[6].split(","))]
                found.rows.append((int(row[1]), in_port, int(row[3]), int(row[4], 0), to))
            elif unmark := UNMARK.match(line):
                found.unmark = unmark[1], unmark[2]
            elif passed := PASS.match(line):
                found.gateway = passed[1]
            else:
                assert not line.startswith(("table=1", "table=2")), line
        for line in (folder / "groups.txt").read_text().splitlines():
            if not line.startswith("#"):
                number, kind, buckets = GROUP.match(line).groups()
                found.groups[int(number)] = kind, [_bucket(b) for b in buckets.split("bucket=")[1:]]
        assert found.unmark[1] in ("", found.gateway)
        return found

    def class_of(self, address):
        """The class of an address by its longest prefix, None where there is no row."""
        for length in sorted(self.routes, reverse=True):
            found = self.routes[length].get(address >> 32 - length << 32 - length)
            if found is not None:
                return found
        return None

    def led_to(self, metadata, in_port):
        """The group, or the ports, that a packet with this metadata is led to."""
        rows = [
            row for row in self.rows if metadata & row[3] == row[2] and row[1] in (None, in_port)
        ]
        rows.sort(reverse=True, key=lambda row: row[0])
        assert len(rows) == 1 or rows[0][0] > rows[1][0], "two rows of one priority match"
        return rows[0][4]

    def ports(self, group):
        """The ports that it shares packets over, which of these mark, and those tried in order."""
        kind, buckets = self.groups[group]
        if kind == "select":
            assert all(watched == sent for watched, sent, _ in buckets)
            assert {mac for *_, mac in buckets} <= {"", self.unmark[0]}
            return [int(sent) for _, sent, _ in buckets], [bool(mac) for *_, mac in buckets], []
        shared, marks, tried = [], [], []
        for watched, sent, mac in buckets:
            assert not mac
            if sent.startswith("group"):
                assert (sent, shared, tried) == (watched, [], [])
                shared, marks, tried = self.ports(int(sent[5:]))
            else:
                assert sent in (watched, "in_port")
                tried.append(BACK if sent == "in_port" else int(sent))
        return shared, marks, tried


def _bucket(text):
    words = text.rstrip(",").split(",")
    watched = next((re.split("[_:]", w)[1:] for w in words if w.startswith("watch_")), None)
    mac = re.search(r"set_field:(\S+?)->eth_dst", text)
    last = words[-1].removeprefix("actions=")
    sent = last.replace("output:", "").replace("group:", "group")
    if watched is None:  # an indirect group watches nothing
        return sent, sent, mac[1] if mac else ""
    group = "group" if watched[0] == "group" else ""
    return group + watched[1], sent, mac[1] if mac else ""


@dataclass
class Packets:
    """n packets: where to, what is down, on how many links marked, where they passed.

    down: int[n, 2], the ends of a link, or a switch twice. path: int[n, W], switches, -1 beyond the
    last. arrived: bool[n].
    """

    target: np.ndarray
    down: np.ndarray
    marked: np.ndarray
    path: np.ndarray
    arrived: np.ndarray

    @property
    def links(self):
        """int[n]: how many links they took."""
        return (self.path >= 0).sum(axis=1) - 1

    @classmethod
    def all_of(cls, parts):
        """Those of all parts."""
        width = max(part.path.shape[1] for part in parts)
        paths = [
            np.pad(p.path, ((0, 0), (0, width - p.path.shape[1])), constant_values=-1)
            for p in parts
        ]
        words = ("target", "down", "marked", "arrived")
        rest = {word: np.concatenate([getattr(part, word) for part in parts]) for word in words}
        return cls(path=np.concatenate(paths), **rest)


class TextFabric:
    """The switches of a folder, cabled.

    number: int[S, S], the class of each switch for each other one, -1 without a row. By switch and
    class: shared and marks, the ports that share packets of hosts, 0 beyond the last, and whether
    these are marked; entry, those tried in their place; tried, by the port that a packet came in
    on; spread, the same for marked packets: those that share them, none where they go as others.

    Args:
        folder: what was rendered.
        names: of the switches, in the order of their numbers.
        far, far_port: int[S, P + 1], the switch and its port behind each port; -1 for none.
        rank: int[S], of the switches, for channels.
    """

    def __init__(self, folder, names, far, far_port, rank):
        self.far, self.far_port, self.rank = far, far_port, rank
        texts = [SwitchText.read(folder / name) for name in names]
        self.ends = np.array([v for v, text in enumerate(texts) if text.hosts])
        self.port_to = np.zeros((len(texts), len(texts)), np.int32)
        switch, port = np.nonzero(far >= 0)
        self.port_to[switch, far[switch, port]] = port
        self.number = np.full((len(texts), len(texts)), -1)
        used = [self._classes(s, text, texts) for s, text in enumerate(texts)]
        size, ports = (len(texts), max(map(len, used))), far.shape[1]
        self.shared, self.entry = np.zeros((2, *size, ports + 2), int)
        self.marks = np.zeros(self.shared.shape, np.bool_)
        self.tried, self.spread = np.zeros((2, *size, ports, ports + 2), int)
        for s, (text, classes) in enumerate(zip(texts, used, strict=True)):
            for c, value in enumerate(classes):
                shared, marks, tried = text.ports(text.led_to(value | ENTERING, None))
                _put(self.shared[s, c], shared)
                _put(self.marks[s, c], marks)
                _put(self.entry[s, c], tried)
                for port in np.flatnonzero(far[s] >= 0):
                    group = text.led_to(value, port)
                    shared, _, tried = text.ports(group)
                    assert not shared
                    _put(self.tried[s, c, port], tried)
                    to = text.led_to(value | MARKED, port) if text.unmark[0] else group
                    if to != group:
                        _put(self.spread[s, c, port], to)

    def _classes(self, s, text, texts):
        """The classes of a switch in use, which are numbered from 0."""
        found = {d: text.class_of(texts[d].hosts[0]) for d in self.ends.tolist() if d != s}
        classes = sorted({value for value in found.values() if value is not None})
        for d, value in found.items():
            self.number[s, d] = -1 if value is None else classes.index(value)
        return classes

    def every_path(self):
        """The packets of every pair by every path, with nothing down."""
        s, d = (side.ravel() for side in np.meshgrid(self.ends, self.ends, indexing="ij"))
        s, d = s[s != d], d[s != d]
        return self._sent(s, d, np.full((len(s), 2), -2))

    def one_link_down(self, whole):
        """Packets that meet a link that is down, for each link of each of the whole."""
        return self._again(whole, lambda u, v: np.sort(np.column_stack((u, v)), axis=1))

    def one_switch_down(self, whole):
        """Packets that meet a switch that is down on their way, for each of these of each."""
        return self._again(whole, lambda _, v: np.column_stack((v, v)))

    def _again(self, whole, failed):
        """Packets at the switch before the failure: it shares them over other ways, or repairs."""
        path, d = whole.path, whole.target
        channel = channels_of(self.rank, path)
        parts = [self._at_hosts(path, d, failed)]
        for link in range(1, path.shape[1] - 1):
            now, after = path[:, link], path[:, link + 1]
            down = failed(now, after)
            met = (after >= 0) & ((down[:, 0] != down[:, 1]) | (after != d))
            for before in range(link):
                met &= self._up(path[:, before], path[:, before + 1], down)
            came = self.port_to[now, path[:, link - 1]]
            marked = whole.marked >= link
            key = np.column_stack((came, now, d, after, channel[:, link - 1], marked))[met]
            _, first = np.unique(key, axis=0, return_index=True)
            some = np.flatnonzero(met)[first]
            ports = self.spread[now[some], self.number[now[some], d[some]], came[some]]
            ports = np.where(marked[some, None], ports, 0)
            left = some[~self._shared_out(now[some], ports, down[some])]
            parts.append(
                self._followed(
                    d[left], down[left], whole.marked[left], path[left, : link + 1], came[left]
                )
            )
        return Packets.all_of(parts)

    def _shared_out(self, now, ports, down):
        """bool[n]: packets that are spread over ports where they are, of which one is up."""
        live = self._live(now[:, None], ports, down[:, None]).any(axis=1)
        shares = ports.any(axis=1)
        assert (live >= shares).all(), "no path is left to spread a packet over"
        return shares

    def _at_hosts(self, path, d, failed):
        """Packets of hosts none of whose shared paths is up, with the first one down."""
        down = failed(path[:, 0], path[:, 1])
        met = (down[:, 0] != down[:, 1]) | (path[:, 1] != d)
        asked = np.unique(np.column_stack((path[:, 0], d, down))[met], axis=0)
        s, d, down = asked[:, 0], asked[:, 1], asked[:, 2:]
        live = self._live(s[:, None], self.shared[s, self.number[s, d]], down[:, None])
        alone = ~live.any(axis=1)
        return self._sent(s[alone], d[alone], down[alone])

    def _up(self, one, other, down):
        """Whether links between switches are up."""
        link = (np.minimum(one, other) == down[..., 0]) & (np.maximum(one, other) == down[..., 1])
        alone = (down[..., 0] == down[..., 1]) & ((other == down[..., 0]) | (one == down[..., 0]))
        return ~link & ~alone

    def _live(self, switch, port, down):
        far = np.where(port > 0, self.far[switch, np.maximum(port, 0)], -1)
        return (far >= 0) & self._up(switch, far, down)

    def _first(self, switch, came, tried, down):
        """int[n]: the first port that is up, 0 for none, and where it sends back unsaid."""
        meant = np.where(tried == BACK, came[:, None], tried)
        live = self._live(switch[:, None], meant, down[:, None])
        place = live.argmax(axis=1)[:, None]
        out = np.take_along_axis(meant, place, axis=1)[:, 0]
        told = np.take_along_axis(tried, place, axis=1)[:, 0] == BACK
        return np.where(live.any(axis=1) & (told | (out != came)), out, 0)

    def _sent(self, s, d, down):
        """The packets of pairs (s, d) while something is down, by every path that is up."""
        row = s, self.number[s, d]
        shared = self.shared[row]
        live = self._live(s[:, None], shared, down[:, None])
        which, taken = np.nonzero(live)
        alone = np.flatnonzero(~live.any(axis=1))
        entry = self._first(
            s[alone], np.zeros(len(alone), int), self.entry[row][alone], down[alone]
        )
        out = np.concatenate((shared[which, taken], entry))
        marked = np.concatenate((self.marks[row][which, taken], np.zeros(len(alone), int)))
        which = np.concatenate((which, alone))
        s, d, down = s[which], d[which], down[which]
        lost = out == 0
        none = Packets(d[lost], down[lost], marked[lost], s[lost, None], d[lost] < 0)
        s, d, down, marked, out = (part[~lost] for part in (s, d, down, marked, out))
        path, came = np.column_stack((s, self.far[s, out])), self.far_port[s, out]
        return Packets.all_of([none, *self._marked(d, down, marked, path, came)])

    def _marked(self, d, down, marked, path, came):
        """The packets from the last switch of their path, by every path that marks may take."""
        now, last = path[:, -1], path.shape[1] - 1
        at = now, self.number[now, d], came
        ports = self.spread[at]
        ports = np.where(((marked == last) & (now != d))[:, None], ports, 0)
        plain = ~ports.any(axis=1)
        yield self._followed(d[plain], down[plain], marked[plain], path[plain], came[plain])
        which, taken = np.nonzero(self._live(now[:, None], ports, down[:, None]))
        out = ports[which, taken]
        after = np.column_stack((path[which], self.far[now[which], out]))
        into = self.far_port[now[which], out]
        if len(which):
            yield from self._marked(d[which], down[which], marked[which], after, into)
        lost = ~plain
        lost[which] = False
        yield Packets(d[lost], down[lost], marked[lost], path[lost], d[lost] < 0)

    def _followed(self, d, down, marked, path, came):
        """The packets from the last switch of their path on, where they came in by a port."""
        first = path.shape[1]
        whole = np.full((len(d), first + MOST_LINKS), -1, np.int32)
        whole[:, :first] = path
        at, came = path[:, -1].copy(), came.copy()
        moving, step = np.flatnonzero(at != d), first
        while len(moving) and step < whole.shape[1]:
            here, now = at[moving], came[moving]
            tried = self.tried[here, self.number[here, d[moving]], now]
            out = self._first(here, now, tried, down[moving])
            moving, here, out = moving[out > 0], here[out > 0], out[out > 0]
            came[moving] = self.far_port[here, out]
            at[moving] = whole[moving, step] = self.far[here, out]
            moving, step = moving[at[moving] != d[moving]], step + 1
        return Packets(d, down, marked, whole[:, :step], at == d)


def _put(row, ports):
    row[: len(ports)] = ports


def channels_of(rank, path):
    """int[n, W - 1]: the channel of each link by valley."""
    up = rank[path[:, 1:]] > rank[path[:, :-1]]
    valley = np.pad(~up[:, :-1] & up[:, 1:] & (path[:, 2:] >= 0), ((0, 0), (1, 0)))
    return np.cumsum(valley, axis=1)


def channels_needed(rank, *walks):
    """How many channels the packets need by valley, 0 where waits within them form a cycle.

    rank: int[S], of the switches.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    waits, most = [], 0
    for packets in walks:
        path = packets.path
        channel = channels_of(rank, path)
        most = max(most, 1 + int(channel.max(initial=0)))
        arc = (channel * len(rank) + path[:, :-1]) * len(rank) + path[:, 1:]
        both = path[:, 2:] >= 0
        pairs = np.column_stack((arc[:, :-1][both], arc[:, 1:][both]))
        waits.append(np.unique(pairs, axis=0))
    arcs, ends = np.unique(np.concatenate(waits), return_inverse=True)
    ends = ends.reshape(-1, 2)
    graph = coo_array((np.ones(len(ends)), ends.T), shape=(len(arcs), len(arcs)))
    free = connected_components(graph, connection="strong")[0] == len(arcs)
    return most if free else 0
