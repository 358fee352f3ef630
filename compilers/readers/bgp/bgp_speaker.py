"""A BGP speaker, read from the statements of one configuration: its AS, neighbours and policies.

Systems differ in their statements (`bgp_dialects`), not in what these mean. Only the shape of
configuration that polarfab renders is understood: it has to have each of these statements, and no
other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from compilers.readers.bgp.bgp_dialects import BgpDialect
from compilers.readers.emitted_forwarding import EmittedSwitch
from compilers.readers.exact_text import exact_network, exact_number, is_number
from compilers.readers.statements import Fields, Statements

FAMILIES = (
    {"family": "ipv4", "word": "ip", "inet": "inet", "avd": "", "full": "32"},
    {"family": "ipv6", "word": "ipv6", "inet": "inet6", "avd": "ipv6_", "full": "128"},
)
"""The names of address families, and the words for them."""


LARGEST_METRIC = (1 << 32) - 1
UNCOUNTED_PATHS = 16
"""How many Junos takes at once unless `chassis maximum-ecmp` says another number."""


@dataclass(frozen=True, slots=True)
class BgpNeighbour:
    """A neighbour in one address family, and what the policy for it does with its announcements."""

    port: str
    """The port of the link, or the neighbour's address behind it."""
    as_number: int
    line: int
    """The line that opens the session."""
    metric: int
    """The metric of prefixes without one of their own."""
    detour_metric: int
    """The metric of a detour, a path over another neighbour of the switch; -1 where the system
    makes no difference."""
    preferred: dict[str, int]
    """The metrics of single prefixes."""
    description: str = ""
    """The description of the neighbour: its name and its port."""


@dataclass(frozen=True, slots=True)
class AcceptedPrefixes:
    """The prefixes that the policies of a switch let in and out."""

    pool: str
    """The network that they are part of."""
    shortest: int
    longest: int
    """The least and the greatest length of a prefix."""
    via_pool: str = ""
    """The network of single addresses that are accepted too, as next hops of static routes; ""
    without any."""

    def holds(self, prefix: str) -> bool:
        """Whether a prefix is accepted.

        >>> AcceptedPrefixes("10.0.0.0/8", 24, 24).holds("10.7.1.0/24")
        True
        """
        return _within(prefix, self.pool, self.shortest, self.longest) or self.is_via(prefix)

    def is_via(self, prefix: str) -> bool:
        """Whether a prefix is a single address that is a next hop of static routes."""
        full = 128 if ":" in prefix else 32
        return bool(self.via_pool) and _within(prefix, self.via_pool, full, full)


@dataclass(frozen=True, slots=True)
class SpokenFamily:
    """What a switch says in one address family."""

    own: tuple[str, ...]
    """The prefixes that it announces as its own."""
    sessions: tuple[BgpNeighbour, ...]
    accepted: AcceptedPrefixes
    paths: int = 1
    """How many paths to a prefix it uses at once."""


@dataclass(frozen=True, slots=True)
class BgpSwitch:
    """A switch that speaks BGP, from its own files alone."""

    file: str
    rest: EmittedSwitch
    """What its files say besides BGP. A port `via ADDRESS` stands for the port by which BGP reaches
    that address."""
    as_number: int
    router_id: str
    longest_path: int
    """The most AS numbers that an accepted path may have."""
    families: tuple[SpokenFamily, ...]
    line: int
    """The line of the AS number."""
    falls_through: bool = False
    """Whether a packet that its ingress table has no route for is looked up in the main table."""


@dataclass(frozen=True, slots=True)
class SpeakerOptions:
    """The options that speakers were rendered with."""

    bfd: bool = False
    """BFD watches every link."""
    gtsm: bool = False
    """Packets of a session have to come from the neighbour itself."""
    numbered: bool = True
    """Links have addresses, so that each family has a session; else one session is for both."""
    wcmp: bool = False
    """Announcements say how many paths are behind them."""


@dataclass(slots=True)
class Speaker:
    """The reading of a speaker: what was understood so far."""

    statements: Statements
    dialect: BgpDialect
    options: SpeakerOptions
    fields: Fields = field(default_factory=dict)
    """The fields of statements for the whole switch, such as `number` and `id`."""
    families: list[SpokenFamily] = field(default_factory=list)

    @classmethod
    def read(cls, statements: Statements, dialect: BgpDialect, options: SpeakerOptions) -> Speaker:
        """Read a speaker; what its statements lack is noted in `statements.missing`."""
        speaker = cls(statements, dialect, options)
        bfd = dialect.bfd if options.bfd else ()
        speaker.fields = statements.need((*dialect.once, *bfd), {})
        for words in FAMILIES:
            group = f"fabric-{words['family']}" if options.numbered else "fabric"
            fields = speaker.fields | words | {"group": group}
            if words["family"] == "ipv4" or any(statements.find(dialect.family[0], fields)):
                speaker.families.append(speaker._family(statements.need(dialect.family, fields)))
        return speaker

    def _family(self, fields: Fields) -> SpokenFamily:
        dialect, options = self.dialect, self.options
        if any(any(self.statements.find(template, fields)) for template in dialect.via):
            fields = self.statements.need(dialect.via, fields)
        sessions = tuple(self._sessions(fields))
        self._policy(fields, f"fabric-{fields['family']}")
        paths = self._paths(fields)
        self.statements.need(
            (
                *(dialect.watched if options.bfd else ()),
                *(dialect.secured if options.gtsm else ()),
                *(dialect.alone if not options.numbered else ()),
                *(dialect.several if paths > 1 else ()),
                *(dialect.wcmp if options.wcmp else ()),
            ),
            fields,
        )
        own = [
            match["prefix"]
            for template in dialect.own
            for match, _ in self.statements.find(template, fields)
        ]
        accepted = AcceptedPrefixes(
            pool=fields["pool"],
            shortest=_number(fields["least"]),
            longest=_number(fields["longest"]),
            via_pool=fields.get("via", ""),
        )
        return SpokenFamily(tuple(own), sessions, accepted, paths)

    def _paths(self, fields: Fields) -> int:
        """How many paths to a prefix are used at once, also where the file says no number."""
        paths = fields.get("paths", "1")
        for template in self.dialect.several[:1]:
            for several, _ in self.statements.find(template, fields):
                paths = several.get("paths", str(UNCOUNTED_PATHS))
        return _number(paths)

    def _sessions(self, fields: Fields) -> Iterator[BgpNeighbour]:
        dialect = self.dialect
        first, *others = dialect.session if self.options.numbered else dialect.unnumbered
        for match, line in list(self.statements.find(first, fields)):
            session = self.statements.need((*others, *dialect.around), match)
            policy, preferred = f"fabric-{fields['family']}", {}
            if override := next(self.statements.find(dialect.override[0], session), None):
                policy = override[0]["policy"]
                self.statements.need(dialect.override[1:], override[0])
                preferred_metric = self._entry(fields, policy, "10", policy)
                prefixes = self._listed(fields | {"list": policy})
                preferred = dict.fromkeys(prefixes, preferred_metric)
            metric, detour_metric = self._policy(fields, policy)
            yield BgpNeighbour(
                port=session["peer"],
                as_number=_number(session["far"]),
                line=line,
                metric=metric,
                detour_metric=detour_metric,
                preferred=preferred,
                description=f"{session.get('host', '')} {session.get('plug', '')}",
            )

    def _listed(self, fields: Fields) -> Iterator[str]:
        """The prefixes of a prefix list."""
        first, *others = self.dialect.preferred
        for match, _ in list(self.statements.find(first, fields)):
            yield self.statements.need(others, match)["prefix"]

    def _policy(self, fields: Fields, policy: str) -> tuple[int, int]:
        """The metric of a policy for most prefixes, and its metric for detours (-1: the same)."""
        foundby = self.dialect.foundby if "via" in fields else ()
        self.statements.need((*self.dialect.everyone, *foundby), fields | {"policy": policy})
        all_prefixes = f"fabric-{fields['family']}"
        metric = self._entry(fields, policy, "20", all_prefixes)
        detour_metric = self._entry(fields, policy, "5", all_prefixes) if self.dialect.again else -1
        if 0 <= detour_metric <= metric:
            self.statements.missing.append(f"a metric above {metric} in {policy} 5")
        return metric, detour_metric

    def _entry(self, fields: Fields, policy: str, place: str, prefix_list: str) -> int:
        """The metric of one entry of a policy: 5 is that of detours, 10 and 20 are others."""
        entry = {"policy": policy, "place": place, "list": prefix_list}
        if "most" in self.fields:
            entry["most"] = self.fields["most"]
        six = self.dialect.six if fields["family"] == "ipv6" and self.options.numbered else ()
        templates = self.dialect.again if place == "5" else self.dialect.entry
        match = self.statements.need((*templates, *six), fields | entry)
        if "most" in match:
            self.fields["most"] = match["most"]
        metric = _number(match["metric"])
        if not 0 <= metric <= LARGEST_METRIC:
            self.statements.missing.append(f"a metric up to {LARGEST_METRIC} in {policy} {place}")
        return metric

    def switch(self, file: str, rest: EmittedSwitch) -> BgpSwitch:
        """The speaker, with what its files say besides BGP and with everything that is wrong.

        Args:
            file: where the statements about BGP are.
            rest: what the files of the switch say besides.
        """
        most = _number(self.fields.get("most", "0"))
        longest_path = most or _number(self.fields.get("less", "-1")) + 1
        # Faults first: looking for them finds statements, which then are not unknown.
        wrong = [(file, line, text) for line, text in self._faults(rest, longest_path)]
        unread = [(file, *statement) for statement in self.statements.unknown()]
        return BgpSwitch(
            file=file,
            rest=replace(rest, unread=[*rest.unread, *unread], wrong=[*rest.wrong, *wrong]),
            as_number=_number(self.fields["number"]),
            router_id=self.fields["id"],
            longest_path=longest_path,
            families=tuple(self.families),
            line=self.line("number"),
        )

    def _faults(self, rest: EmittedSwitch, longest_path: int) -> Iterator[tuple[int, str]]:
        """What is missing or wrong, each with its line, 0 where only the file is known."""
        yield from ((0, text) for text in self.statements.lacking())
        yield from self.statements.unmade(self.dialect.made)
        if not is_router_id(self.fields["id"]):
            text = f"router id {self.fields['id']}, which is no IPv4 address"
            yield self.line("id"), text
        if self.dialect.rooted is not None:
            discarded = {prefix for prefix, *_ in rest.discards}
            for prefix in (prefix for family in self.families for prefix in family.own):
                if prefix not in discarded:
                    yield 0, f"no route that discards {prefix}, so it may not be announced"
        if self.dialect.anyof:
            yield from self._detour_faults(longest_path)

    def _detour_faults(self, longest_path: int) -> Iterator[tuple[int, str]]:
        """Lists of detours that name other neighbours than there are, or other lengths."""
        rows = [
            row for template in self.dialect.anyof for row in self.statements.find(template, {})
        ]
        neighbours = {str(s.as_number) for family in self.families for s in family.sessions}
        around = {number for fields, _ in rows for number in fields["around"].split("|")}
        more = {fields["rest"] for fields, _ in rows}
        if around != neighbours or more != {str(longest_path - 2)}:
            text = f"paths over {', '.join(sorted(around))}, up to {', '.join(sorted(more))} more"
            yield rows[0][1] if rows else 0, f"{text}, for those over another"

    def line(self, name: str) -> int:
        """The line of the statement for the whole switch that has this field; 0 without any."""
        for template in self.dialect.once:
            if f"<{name}>" in template:
                for _, line in self.statements.find(template, self.fields):
                    return line
        return 0


def with_described_sessions(switch: BgpSwitch, far_ends: Mapping[str, str]) -> BgpSwitch:
    """A switch with faults for neighbours whose description is not that of their port.

    Args:
        switch: its sessions name their ports, where they are known.
        far_ends: the node and the port at the far end of each port.
    """
    wrong = [
        (switch.file, session.line, f"a neighbor at {session.port} described {session.description}")
        for family in switch.families
        for session in family.sessions
        if session.port and session.description != far_ends.get(session.port, "")
    ]
    return replace(switch, rest=replace(switch.rest, wrong=[*switch.rest.wrong, *wrong]))


def is_router_id(text: str) -> bool:
    """Whether a text is an IPv4 address."""
    parts = text.split(".")
    return len(parts) == 4 and all(is_number(part) and exact_number(part) < 256 for part in parts)


def _within(prefix: str, pool: str, shortest: int, longest: int) -> bool:
    """Whether a prefix is part of a network and has one of these lengths."""
    try:
        network, whole = exact_network(prefix), exact_network(pool)
    except ValueError:
        return False
    if network.version != whole.version or not shortest <= network.prefixlen <= longest:
        return False
    return network.network_address in whole


def _number(text: str) -> int:
    """The number that a text is, -1 where it is none."""
    return exact_number(text) if is_number(text) else -1
