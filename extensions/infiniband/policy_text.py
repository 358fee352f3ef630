"""Reader of OpenSM's QoS policy: the service level of packets, by the ports at both ends.

The policy has port groups, levels and match rules, in any number. `read_policy` returns the rules,
in which the names of groups and levels are replaced by GUIDs and numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from compilers.readers.emitted_report import DifferenceList
from compilers.readers.exact_text import exact_words
from compilers.readers.grammar.rules import grammar
from compilers.readers.grammar.text_engine import Statement, TextEngine
from compilers.readers.text_lines import TextLines

PORT_GUID = re.compile(r"0x[0-9a-f]{16}")
"""A port GUID: `0x0250460000010003`."""
SERVICE_LEVELS = {str(level) for level in range(16)}
"""The service levels that a policy can name."""


@dataclass(frozen=True, slots=True)
class QosRule:
    """A rule of the QoS policy."""

    level: int
    """The service level of these packets."""
    line: int
    """The line where the rule begins."""
    source: tuple[int, ...] = ()
    """The port GUIDs that packets come from; () in the default rule."""
    destination: tuple[int, ...] = ()
    """The port GUIDs that packets are for; () in the default rule."""


@dataclass(frozen=True, slots=True)
class QosPolicy:
    """A QoS policy."""

    rules: list[QosRule]
    """The rules, in the order in which OpenSM tries them."""
    default: QosRule
    """The level DEFAULT as a rule without GUIDs: that of pairs that no rule fits."""


@dataclass(frozen=True, slots=True)
class PolicyPart:
    """A part of a QoS policy: a port group, a level or a rule."""

    kind: str
    """The word that begins it."""
    line: int
    """The line where it begins."""
    values: dict[str, str]
    """Its values by key."""


@dataclass(slots=True)
class _PolicyActor:
    """Collects the parts of a QoS policy while its grammar is read."""

    file: Path
    """The file."""
    differences: DifferenceList
    """Collects what is not as it should be."""
    parts: list[PolicyPart] = field(default_factory=list)
    """The parts that have been read."""

    def add_wrong(self, line: int, text: str) -> None:
        """See `GrammarActor.add_wrong`."""
        self.differences.add(self.file, line, text, "a policy that OpenSM's parser takes")

    def add_unread(self, line: int, text: str) -> None:
        """See `GrammarActor.add_unread`."""
        self.differences.add_unread(self.file, line, text)

    def next_hop(self, statement: Statement, kind: str, *words: str) -> None:
        """See `GrammarActor.next_hop`: there are no routes."""

    def begin(self, statement: Statement) -> None:
        """Begin a part."""
        self.parts.append(PolicyPart(statement.text, statement.line, {}))

    def value(self, statement: Statement, key: str, text: str) -> None:
        """Enter a value that a part has once."""
        values = self.parts[-1].values
        if key in values:
            self.add_wrong(statement.line, f"{statement.text} again")
        values[key] = text

    def more(self, statement: Statement, key: str, text: str) -> None:  # noqa: ARG002
        """Enter a line of a value that may take several lines."""
        values = self.parts[-1].values
        values[key] = f"{values[key]}, {text}" if key in values else text


def read_policy(file: Path, differences: DifferenceList) -> QosPolicy:
    """The rules of a QoS policy, with the GUIDs of their port groups."""
    actor = _PolicyActor(file, differences)
    TextEngine(grammar("opensm", "qos-policy.conf"), actor).read(TextLines.read(file))
    groups: dict[str, tuple[int, ...]] = {}
    levels: dict[str, QosRule] = {}
    rules: list[QosRule] = []
    for part in actor.parts:
        name, level = part.values.get("name", ""), part.values.get("sl")
        if part.kind == "port-group" and name not in groups:
            groups[name] = _group_guids(part, file, differences)
        elif part.kind == "qos-level" and name not in levels and level in SERVICE_LEVELS:
            levels[name] = QosRule(level=int(part.values["sl"]), line=part.line)
        elif part.kind == "qos-match-rule" and part.values.get("qos-level-name", "") in levels:
            source = groups.get(part.values.get("source", ""))
            destination = groups.get(part.values.get("destination", ""))
            if source is None or destination is None:
                differences.add(file, part.line, f"{part.values}", "port groups that are there")
                continue
            number = levels[part.values["qos-level-name"]].level
            rules.append(QosRule(number, part.line, source, destination))
        else:
            stated = f"{part.kind} {name}"
            differences.add(file, part.line, stated, "one of that name, and whole")
    return QosPolicy(rules, levels.get("DEFAULT", QosRule(level=0, line=0)))


def _group_guids(part: PolicyPart, file: Path, differences: DifferenceList) -> tuple[int, ...]:
    """The port GUIDs of a port group."""
    texts = exact_words(part.values.get("port-guid", "").replace(",", " "))
    if malformed := [text for text in texts if not PORT_GUID.fullmatch(text)]:
        stated = f"port-guid: {malformed[0]}"
        differences.add(file, part.line, stated, "GUIDs such as 0x0250460000010003")
    return tuple(int(text, 16) for text in texts if text not in malformed)
