"""A BGP speaker, read from the statements of one configuration: its AS, neighbours and policies.

What comes in are the statements of a file and the dialect of its system (`bgp_dialects`): systems
differ in their statements, not in what these mean. What goes out is a `BgpSwitch`. `bgp_files` and
the readers of FRR and BIRD call `Speaker.read` and `Speaker.switch`.

Only configurations that polarfab renders are understood. So each statement of the dialect has to be
there, and a statement that is not in the dialect is unknown.

The statements of a dialect are templates with fields, such as `neighbor <peer> remote-as <far>`.
`Statements.find` yields the fields of every statement that fits a template. `Statements.need`
returns the fields of templates that have to fit, and notes those that do not. Both take the fields
that are known already, and return them with the new ones. The fields that this module reads are

| field | what it is |
|---|---|
| `number`, `id` | the AS number and the router id of the switch |
| `most`, `less` | the most AS numbers of an accepted path; one less than that |
| `pool`, `least`, `longest` | the network of accepted prefixes; their shortest and longest length |
| `via` | the network of addresses that are accepted as next hops of static routes |
| `paths` | how many paths to a prefix are used at once |
| `prefix` | a prefix that the switch announces, or one of a prefix list |
| `peer`, `far` | the address of a neighbour, or the port towards it; its AS number |
| `host`, `plug` | the description of a neighbour: its name and its port |
| `policy`, `place`, `list`, `metric` | a policy; the number, prefix list and metric of an entry |
| `around`, `rest` | AS numbers that detours go over; how many more may follow |
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
"""The fields of statements that depend on the address family, IPv4 first.

`family` is its name, `word` the command of routers, `inet` Junos's word, `avd` the beginning of
AVD's keys, and `full` the length of a single address.
"""
LARGEST_METRIC = (1 << 32) - 1
"""The largest metric (MED), which has 32 bits."""
JUNOS_PATHS = 16
"""How many paths Junos uses at once unless `chassis maximum-ecmp` says another number."""
DETOURS, PREFERRED, ALL_PREFIXES = "5", "10", "20"
"""The sequence numbers of a policy's entries, which are tried in this order: for detours, for the
prefixes of the policy's own list, and for all prefixes."""
SAME_METRIC = -1
"""In place of the metric of detours: the system gives them that of other paths."""


@dataclass(frozen=True, slots=True)
class BgpNeighbour:
    """A neighbour in one address family, and what the policy for it does with its announcements."""

    peer: str
    """What its statements name: the neighbour's address, or the port of a link without addresses.
    """
    port: str
    """The port of the link; "" where it is not known."""
    as_number: int
    """The AS number of the neighbour."""
    line: int
    """The line that opens the session."""
    metric: int
    """The metric of all prefixes that are not in `preferred`."""
    detour_metric: int
    """The metric of a detour, a path over another neighbour of the switch, or SAME_METRIC."""
    preferred: dict[str, int]
    """The metric of each prefix that the policy prefers."""
    description: str = ""
    """The description of the neighbour: its name and its port."""


@dataclass(frozen=True, slots=True)
class AcceptedPrefixes:
    """The prefixes that the policies of a switch accept from neighbours, and announce to them."""

    pool: str
    """The network that they are part of."""
    shortest: int
    """The least length of an accepted prefix."""
    longest: int
    """The greatest length of an accepted prefix."""
    next_hop_pool: str = ""
    """The network of single addresses that are accepted as next hops of static routes; "" where
    none are."""

    def holds(self, prefix: str) -> bool:
        """Whether a prefix is accepted.

        >>> AcceptedPrefixes("10.0.0.0/8", 24, 24).holds("10.7.1.0/24")
        True
        """
        return _within(prefix, self.pool, self.shortest, self.longest) or self.is_next_hop(prefix)

    def is_next_hop(self, prefix: str) -> bool:
        """Whether a prefix is a single address that is a next hop of static routes."""
        length = 128 if ":" in prefix else 32
        return bool(self.next_hop_pool) and _within(prefix, self.next_hop_pool, length, length)


@dataclass(frozen=True, slots=True)
class SwitchFamily:
    """The BGP configuration of a switch in one address family."""

    announced: tuple[str, ...]
    """The prefixes that the switch announces as its own."""
    sessions: tuple[BgpNeighbour, ...]
    """The neighbours with which it has a session."""
    accepted: AcceptedPrefixes
    """The prefixes that it accepts and announces further."""
    most_paths: int = 1
    """How many paths to a prefix it uses at once (ECMP)."""


@dataclass(frozen=True, slots=True)
class BgpSwitch:
    """A switch that speaks BGP, from its own files alone."""

    file: str
    """The file with the statements about BGP."""
    without_bgp: EmittedSwitch
    """The forwarding that its files state besides BGP. A port `via ADDRESS` stands for the port by
    which BGP reaches that address."""
    as_number: int
    """Its AS number."""
    router_id: str
    """Its router id, as the file writes it."""
    longest_path: int
    """The most AS numbers that an accepted path may have."""
    families: tuple[SwitchFamily, ...]
    """Its address families, IPv4 first."""
    line: int
    """The line of the AS number."""
    falls_through: bool = False
    """Whether a packet is looked up in the main table if that of its ingress port has no route."""


@dataclass(frozen=True, slots=True)
class SpeakerOptions:
    """The options with which the configurations of speakers were rendered."""

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
    """A speaker while its configuration is read.

    `fields` are those of statements for the whole switch. Methods that read statements for a family
    or a neighbour take further fields, which their templates name.
    """

    statements: Statements
    """The statements of the configuration."""
    dialect: BgpDialect
    """The statements that it has to have, in the words of its system."""
    options: SpeakerOptions
    """The options with which it was rendered."""
    fields: Fields = field(default_factory=dict)
    """The fields of statements for the whole switch: `number`, `id`, and perhaps `most`, `less`."""
    longest_path: str = ""
    """The field `most`, once a statement for the switch or for an entry of a policy has it."""
    families: list[SwitchFamily] = field(default_factory=list)
    """The address families that were read."""

    @classmethod
    def read(cls, statements: Statements, dialect: BgpDialect, options: SpeakerOptions) -> Speaker:
        """Read a speaker; what its statements lack is noted in `statements.missing`."""
        speaker = cls(statements, dialect, options)
        bfd = dialect.bfd_switch if options.bfd else ()
        speaker.fields = statements.need((*dialect.switch, *bfd), {})
        speaker.longest_path = speaker.fields.get("most", "")
        for family in FAMILIES:
            # Without addresses on links both families have one session, so one group.
            group = f"fabric-{family['family']}" if options.numbered else "fabric"
            fields = speaker.fields | family | {"group": group}
            has_family = any(statements.find(dialect.family[0], fields))
            if has_family or family["family"] == "ipv4":  # every fabric has IPv4
                speaker.families.append(speaker._family(statements.need(dialect.family, fields)))
        return speaker

    def _family(self, fields: Fields) -> SwitchFamily:
        """Read one address family, whose fields of `FAMILIES` are among the fields."""
        dialect, options = self.dialect, self.options
        accepts_next_hops = any(
            any(self.statements.find(template, fields)) for template in dialect.next_hop_pool
        )
        if accepts_next_hops:
            fields = self.statements.need(dialect.next_hop_pool, fields)
        sessions = tuple(self._sessions(fields))
        self._policy(fields, _shared_policy(fields))
        most_paths = self._most_paths(fields)
        self.statements.need(
            (
                *(dialect.bfd_family if options.bfd else ()),
                *(dialect.gtsm_family if options.gtsm else ()),
                *(dialect.unnumbered_family if not options.numbered else ()),
                *(dialect.multipath if most_paths > 1 else ()),
                *(dialect.wcmp if options.wcmp else ()),
            ),
            fields,
        )
        announced = tuple(
            prefix_fields["prefix"]
            for template in dialect.announced_prefix
            for prefix_fields, _ in self.statements.find(template, fields)
        )
        accepted = AcceptedPrefixes(
            pool=fields["pool"],
            shortest=_number(fields["least"]),
            longest=_number(fields["longest"]),
            next_hop_pool=fields.get("via", ""),
        )
        return SwitchFamily(announced, sessions, accepted, most_paths)

    def _most_paths(self, fields: Fields) -> int:
        """How many paths to a prefix are used at once.

        Junos states that there are several, and no number.
        """
        most_paths = fields.get("paths", "1")
        if self.dialect.multipath:
            for multipath_fields, _ in self.statements.find(self.dialect.multipath[0], fields):
                most_paths = multipath_fields.get("paths", str(JUNOS_PATHS))
        return _number(most_paths)

    def _sessions(self, fields: Fields) -> Iterator[BgpNeighbour]:
        """Read the sessions of an address family, with the policy of each."""
        dialect = self.dialect
        first, *others = dialect.session if self.options.numbered else dialect.unnumbered
        for first_fields, line in list(self.statements.find(first, fields)):
            session = self.statements.need((*others, *dialect.detour_filter), first_fields)
            # A neighbour has the policy of its family, or one of its own.
            policy, preferred = _shared_policy(fields), {}
            first_of_policy, *rest_of_policy = dialect.neighbour_policy
            if own_policy := next(self.statements.find(first_of_policy, session), None):
                policy_fields, _ = own_policy
                policy = policy_fields["policy"]
                self.statements.need(rest_of_policy, policy_fields)
                preferred_metric = self._entry_metric(fields, policy, PREFERRED, policy)
                prefixes = self._prefixes_of_list(fields | {"list": policy})
                preferred = dict.fromkeys(prefixes, preferred_metric)
            metric, detour_metric = self._policy(fields, policy)
            yield BgpNeighbour(
                peer=session["peer"],
                port="" if self.options.numbered else session["peer"],
                as_number=_number(session["far"]),
                line=line,
                metric=metric,
                detour_metric=detour_metric,
                preferred=preferred,
                description=f"{session.get('host', '')} {session.get('plug', '')}",
            )

    def _prefixes_of_list(self, fields: Fields) -> Iterator[str]:
        """The prefixes of a prefix list."""
        first, *others = self.dialect.preferred_prefix
        for first_fields, _ in list(self.statements.find(first, fields)):
            yield self.statements.need(others, first_fields)["prefix"]

    def _policy(self, fields: Fields, policy: str) -> tuple[int, int]:
        """The metric of a policy for most prefixes, and for detours, which may be SAME_METRIC."""
        next_hop_entry = self.dialect.next_hop_entry if "via" in fields else ()
        needed = *self.dialect.default_entry, *next_hop_entry
        self.statements.need(needed, fields | {"policy": policy})
        all_prefixes = _shared_policy(fields)  # the list has the name of that policy
        metric = self._entry_metric(fields, policy, ALL_PREFIXES, all_prefixes)
        detour_metric = SAME_METRIC
        if self.dialect.detour_entry:
            detour_metric = self._entry_metric(fields, policy, DETOURS, all_prefixes)
        if detour_metric != SAME_METRIC and detour_metric <= metric:
            self.statements.missing.append(f"a metric above {metric} in {policy} {DETOURS}")
        return metric, detour_metric

    def _entry_metric(
        self, fields: Fields, policy: str, sequence_number: str, prefix_list: str
    ) -> int:
        """Read one entry of a policy, and return its metric.

        Some systems state the longest path in each entry. The first entry then decides what it is
        (`longest_path`), and the others have to say the same.

        Args:
            fields: the fields of the address family.
            policy: the name of the policy.
            sequence_number: DETOURS, PREFERRED or ALL_PREFIXES.
            prefix_list: the name of the prefix list that the entry matches.
        """
        entry = {"policy": policy, "place": sequence_number, "list": prefix_list}
        if self.longest_path:
            entry["most"] = self.longest_path
        dialect = self.dialect
        is_of_detours = sequence_number == DETOURS
        templates = dialect.detour_entry if is_of_detours else dialect.policy_entry
        if fields["family"] == "ipv6" and self.options.numbered:
            templates = (*templates, *dialect.ipv6_entry)
        entry_fields = self.statements.need(templates, fields | entry)
        self.longest_path = entry_fields.get("most", "")
        metric = _number(entry_fields["metric"])
        if not 0 <= metric <= LARGEST_METRIC:
            text = f"a metric up to {LARGEST_METRIC} in {policy} {sequence_number}"
            self.statements.missing.append(text)
        return metric

    def switch(self, file: str, without_bgp: EmittedSwitch) -> BgpSwitch:
        """The speaker with the rest of its switch, and with everything that is wrong in its files.

        Args:
            file: the file with the statements about BGP.
            without_bgp: the forwarding that the files of the switch state besides BGP.
        """
        # A system states either the most AS numbers of a path (`most`), or one less (`less`).
        longest_path = _number(self.longest_path or "0")
        if longest_path == 0:
            longest_path = _number(self.fields.get("less", "-1")) + 1
        # Faults first: looking for them finds statements, which then are not unknown.
        wrong = [(file, line, text) for line, text in self._faults(without_bgp, longest_path)]
        unread = [(file, *statement) for statement in self.statements.unread()]
        return BgpSwitch(
            file=file,
            without_bgp=replace(
                without_bgp,
                unread=[*without_bgp.unread, *unread],
                wrong=[*without_bgp.wrong, *wrong],
            ),
            as_number=_number(self.fields["number"]),
            router_id=self.fields["id"],
            longest_path=longest_path,
            families=tuple(self.families),
            line=self.line("number"),
        )

    def _faults(self, without_bgp: EmittedSwitch, longest_path: int) -> Iterator[tuple[int, str]]:
        """The line and the text of each fault; line 0 where only the file is known."""
        yield from ((0, text) for text in self.statements.missing_texts())
        yield from self.statements.used_before_created(self.dialect.created_first)
        if not is_router_id(self.fields["id"]):
            text = f"router id {self.fields['id']}, which is no IPv4 address"
            yield self.line("id"), text
        if self.dialect.announces_routed_only:
            discarded = {prefix for prefix, *_ in without_bgp.discards}
            for family in self.families:
                for prefix in family.announced:
                    if prefix not in discarded:
                        yield 0, f"no route that discards {prefix}, so it may not be announced"
        if self.dialect.any_detour_filter:
            yield from self._detour_faults(longest_path)

    def _detour_faults(self, longest_path: int) -> Iterator[tuple[int, str]]:
        """Faults of detour filters that name other neighbours than there are, or other lengths."""
        filters = [
            statement
            for template in self.dialect.any_detour_filter
            for statement in self.statements.find(template, {})
        ]
        neighbours = {
            str(session.as_number) for family in self.families for session in family.sessions
        }
        # AS numbers around which detours lead, `4200000001|4200000002`.
        around = {number for fields, _ in filters for number in fields["around"].split("|")}
        lengths = {fields["rest"] for fields, _ in filters}
        # A filter names the first two AS numbers of a path; the rest of the path may be as long.
        if around != neighbours or lengths != {str(longest_path - 2)}:
            text = (
                f"paths over {', '.join(sorted(around))}, up to {', '.join(sorted(lengths))} more"
            )
            first_line = filters[0][1] if filters else 0
            yield first_line, f"{text}, for those over another"

    def line(self, name: str) -> int:
        """The line of the statement for the whole switch that has a field; 0 where none has it."""
        for template in self.dialect.switch:
            if f"<{name}>" in template:
                for _, line in self.statements.find(template, self.fields):
                    return line
        return 0


def with_described_sessions(switch: BgpSwitch, far_ends: Mapping[str, str]) -> BgpSwitch:
    """Note a fault at each session whose description names another far end than its port has.

    Args:
        switch: its sessions name their ports, where these are known.
        far_ends: the node and the port at the far end of each port, by the port's name.
    """
    wrong = [
        (switch.file, session.line, f"a neighbor at {session.port} described {session.description}")
        for family in switch.families
        for session in family.sessions
        if session.port and session.description != far_ends.get(session.port, "")
    ]
    emitted = switch.without_bgp
    return replace(switch, without_bgp=replace(emitted, wrong=[*emitted.wrong, *wrong]))


def is_router_id(text: str) -> bool:
    """Whether a text is an IPv4 address: four numbers below 256 with dots between them."""
    parts = text.split(".")
    return len(parts) == 4 and all(is_number(part) and exact_number(part) < 256 for part in parts)


def _shared_policy(fields: Fields) -> str:
    """The name of the policy for the neighbours of a family that have none of their own."""
    return f"fabric-{fields['family']}"


def _within(prefix: str, pool: str, shortest: int, longest: int) -> bool:
    """Whether a prefix is part of a network and has one of these lengths."""
    try:
        network, pool_network = exact_network(prefix), exact_network(pool)
    except ValueError:
        return False
    if network.version != pool_network.version or not shortest <= network.prefixlen <= longest:
        return False
    return network.network_address in pool_network


def _number(text: str) -> int:
    """The number that a text is, -1 where it is none."""
    return exact_number(text) if is_number(text) else -1
