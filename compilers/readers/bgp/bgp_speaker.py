"""A BGP speaker as its configuration says it: its system, its neighbours, and its policies.

Every system says the same in words of its own (`bgp_dialects`). Only one shape of configuration is
understood: each statement of it has to be there, and no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from compilers.readers.bgp.bgp_dialects import BgpDialect
from compilers.readers.emitted_forwarding import EmittedSwitch
from compilers.readers.exact_text import exact_number, is_number
from compilers.readers.statements import Found, Statements

FAMILIES = (
    {"family": "ipv4", "word": "ip", "inet": "inet", "avd": "", "full": "32"},
    {"family": "ipv6", "word": "ipv6", "inet": "inet6", "avd": "ipv6_", "full": "128"},
)
"""The names of address families, and the words for them."""


@dataclass(frozen=True, slots=True)
class BgpNeighbour:
    """A neighbour in an address family: its system, the line, and the metrics of what it announces.

    port: the interface, or the address that is behind it. preferred: metrics of single prefixes;
    others have `usual`. again: that of a path over another neighbour, -1 where it is as others.
    """

    port: str
    number: int
    line: int
    usual: int
    again: int
    preferred: dict[str, int]


@dataclass(frozen=True, slots=True)
class SpokenFamily:
    """What a switch says of an address family.

    own: the prefixes that it announces. taken: (pool, least, longest) of what it accepts and
    announces; via: the pool of the single addresses that it accepts and announces, too, to be next
    hops; "" without any. paths: how many it takes at once to a prefix.
    """

    own: tuple[str, ...]
    sessions: tuple[BgpNeighbour, ...]
    taken: tuple[str, int, int]
    via: str = ""
    paths: int = 1


LARGEST_METRIC = (1 << 32) - 1
UNCOUNTED_PATHS = 16
"""How many Junos takes at once unless `chassis maximum-ecmp` says another number."""


@dataclass(frozen=True, slots=True)
class BgpSwitch:
    """A switch that speaks BGP; most: the systems that a path may have.

    rest: everything but its routes; ports `via ADDRESS` of it are those that BGP finds for the
    address. line: of its number. falls_through: whether packets that the table of their ingress has
    no route for are looked up as others are.
    """

    file: str
    rest: EmittedSwitch
    number: int
    router_id: str
    most: int
    families: tuple[SpokenFamily, ...]
    line: int
    falls_through: bool = False


@dataclass(frozen=True, slots=True)
class SpeakerOptions:
    """What speakers were rendered for: BFD at every link, links with addresses, and so a session
    a family, and paths that announce how many others are behind them.
    """

    bfd: bool = False
    numbered: bool = True
    wcmp: bool = False


@dataclass(slots=True)
class Speaker:
    """What is read of a speaker."""

    said: Statements
    dialect: BgpDialect
    asked: SpeakerOptions
    known: Found = field(default_factory=dict)
    families: list[SpokenFamily] = field(default_factory=list)

    @classmethod
    def read(cls, said: Statements, dialect: BgpDialect, asked: SpeakerOptions) -> Speaker:
        """A speaker, from the statements about it."""
        speaker = cls(said, dialect, asked)
        speaker.known = said.need((*dialect.once, *(dialect.bfd if asked.bfd else ())), {})
        for words in FAMILIES:
            group = f"fabric-{words['family']}" if asked.numbered else "fabric"
            known = speaker.known | words | {"group": group}
            if words["family"] == "ipv4" or any(said.find(dialect.family[0], known)):
                speaker.families.append(speaker._family(said.need(dialect.family, known)))
        return speaker

    def _family(self, known: Found) -> SpokenFamily:
        known = self.said.need(self.dialect.via, known) if self._has_via(known) else known
        sessions = tuple(self._sessions(known))
        self._policy(known, f"fabric-{known['family']}")
        paths = self._paths(known)
        more = (
            (self.dialect.watched, self.asked.bfd),
            (self.dialect.alone, not self.asked.numbered),
            (self.dialect.several, paths > 1),
            (self.dialect.wcmp, self.asked.wcmp),
        )
        self.said.need([line for lines, needed in more if needed for line in lines], known)
        own = [
            found["prefix"] for each in self.dialect.own for found, _ in self.said.find(each, known)
        ]
        taken = known["pool"], _number(known["least"]), _number(known["longest"])
        return SpokenFamily(tuple(own), sessions, taken, known.get("via", ""), paths)

    def _paths(self, known: Found) -> int:
        """How many paths it takes at once, also where the file says no number."""
        found = {"paths": "1"} | known
        for several, _ in self.said.find((*self.dialect.several, "")[0], known):
            found = {"paths": str(UNCOUNTED_PATHS)} | several
        return _number(found["paths"])

    def _has_via(self, known: Found) -> bool:
        return any(any(self.said.find(each, known)) for each in self.dialect.via)

    def _sessions(self, known: Found) -> Iterator[BgpNeighbour]:
        first, *others = self.dialect.session if self.asked.numbered else self.dialect.unnumbered
        for found, line in list(self.said.find(first, known)):
            session = self.said.need((*others, *self.dialect.around), found)
            policy, preferred = f"fabric-{known['family']}", {}
            if overridden := next(self.said.find(self.dialect.override[0], session), None):
                policy = overridden[0]["policy"]
                self.said.need(self.dialect.override[1:], overridden[0])
                metric = self._entry(known, policy, "10", policy)
                preferred = dict.fromkeys(self._listed(known | {"list": policy}), metric)
            metrics = self._policy(known, policy)
            yield BgpNeighbour(session["peer"], _number(session["far"]), line, *metrics, preferred)

    def _listed(self, known: Found) -> Iterator[str]:
        """The prefixes of a list."""
        first, *others = self.dialect.preferred
        for found, _ in list(self.said.find(first, known)):
            yield self.said.need(others, found)["prefix"]

    def _policy(self, known: Found, policy: str) -> tuple[int, int]:
        """The metrics of what a policy has no other for, and of paths over another neighbour."""
        more = self.dialect.foundby if "via" in known else ()
        self.said.need((*self.dialect.everyone, *more), known | {"policy": policy})
        all_of_it = f"fabric-{known['family']}"
        usual = self._entry(known, policy, "20", all_of_it)
        again = self._entry(known, policy, "5", all_of_it) if self.dialect.again else -1
        if 0 <= again <= usual:
            self.said.missing.append(f"a metric above {usual} in {policy} 5")
        return usual, again

    def _entry(self, known: Found, policy: str, place: str, prefixes: str) -> int:
        entry = {"policy": policy, "place": place, "list": prefixes}
        if "most" in self.known:
            entry["most"] = self.known["most"]
        more = self.dialect.six if known["family"] == "ipv6" and self.asked.numbered else ()
        said = self.dialect.again if place == "5" else self.dialect.entry
        found = self.said.need((*said, *more), known | entry)
        if "most" in found:
            self.known["most"] = found["most"]
        metric = _number(found["metric"])
        if not 0 <= metric <= LARGEST_METRIC:
            self.said.missing.append(f"a metric up to {LARGEST_METRIC} in {policy} {place}")
        return metric

    def switch(self, file: str, rest: EmittedSwitch) -> BgpSwitch:
        """The speaker with everything else that its files say."""
        rows = [row for each in self.dialect.anyof for row in self.said.find(each, {})]
        unread = [(file, *each) for each in self.said.unknown()]
        wrong = [(file, 0, text) for text in self.said.lacking()]
        wrong += [(file, line, text) for line, text in self.said.unmade(self.dialect.made)]
        if not is_router_id(self.known["id"]):
            line = self.line("id")
            wrong.append((file, line, f"router id {self.known['id']}, which is no IPv4 address"))
        discarded = {prefix for prefix, *_ in rest.discards}
        wrong += [
            (file, 0, f"no route that discards {prefix}, so it may not be announced")
            for family in self.families
            for prefix in family.own
            if self.dialect.rooted is not None and prefix not in discarded
        ]
        most = _number(self.known.get("most", "0")) or _number(self.known.get("less", "-1")) + 1
        numbers = {str(each.number) for family in self.families for each in family.sessions}
        around = {number for found, _ in rows for number in found["around"].split("|")}
        after = {found["rest"] for found, _ in rows}
        if self.dialect.anyof and (around != numbers or after != {str(most - 2)}):
            text = f"paths over {', '.join(sorted(around))}, up to {', '.join(sorted(after))} more"
            wrong.append((file, rows[0][1] if rows else 0, f"{text}, for those over another"))
        return BgpSwitch(
            file,
            replace(rest, unread=[*rest.unread, *unread], wrong=[*rest.wrong, *wrong]),
            _number(self.known["number"]),
            self.known["id"],
            most,
            tuple(self.families),
            self.line("number"),
        )

    def line(self, name: str) -> int:
        """The line of the statement that says a field for the whole switch; 0 without any."""
        said = (t for t in self.dialect.once if f"<{name}>" in t)
        found = (line for template in said for _, line in self.said.find(template, self.known))
        return next(found, 0)


def is_router_id(text: str) -> bool:
    """Whether a text is an IPv4 address."""
    parts = text.split(".")
    return len(parts) == 4 and all(is_number(part) and exact_number(part) < 256 for part in parts)


def _number(text: str) -> int:
    return exact_number(text) if is_number(text) else -1
