"""Compares the claims of one switch's files with those that the tables expect.

A *claim* is what a line states besides forwarding, such as the address of a host (`Claim`). Each
expected claim has to be made once, and no other claim may be made. *Plain facts* are the claims of
some kinds (`expected_facts.FACTS`): they state a value of one thing, as the MTU of a port.
`switch_check` calls `compare_claims`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from compilers.readers.emitted_forwarding import Claim, EmittedSwitch, Interface, Port
from compilers.readers.emitted_report import DifferenceList
from compilers.readers.expected_claims import expected_claims
from compilers.readers.expected_facts import FACTS, Value
from compilers.tables.build import Build

PORT_KINDS = ("port", "hosts")
"""The kinds of claims that state a port, as the last part of their value. Messages about missing
claims of a port name the line of such a claim."""


def compare_claims(
    build: Build,
    vertex: int,
    emitted: EmittedSwitch,
    number_of: Mapping[Port, int],
    differences: DifferenceList,
    folder: str,
) -> None:
    """Add a difference for each claim that is wrong, repeated or missing.

    Args:
        build: the plane, with ports named as the system names them.
        vertex: the vertex of the switch.
        emitted: the contents of its files.
        number_of: the number of each port of the switch, by its name.
        differences: gets the differences.
        folder: the folder of its files, for claims that no line states.
    """
    claims = emitted.claims
    kinds = {*emitted.claimed_kinds, *(claim.kind for claim in claims)}
    wiring = build.wiring
    comparison = _Comparison(
        names=wiring.port_names[int(wiring.node_type[vertex])],
        number_of=number_of,
        expected={kind: expected_claims(build, vertex, kind) for kind in kinds},
        differences=differences,
    )
    comparison.compare(claims)
    comparison.add_missing(emitted.claimed_kinds, folder)


@dataclass(slots=True)
class _Comparison:
    """The comparison of a switch's claims, by kind."""

    names: Sequence[str]
    """The names of the switch's ports, of which the first has number 1."""
    number_of: Mapping[Port, int]
    """The number of each port by its name."""
    expected: dict[str, set[Value]]
    """The values that the tables expect of each kind."""
    differences: DifferenceList
    """Gets the differences."""
    missing: dict[str, set[Value]] = field(default_factory=dict)
    """The expected values that no line states, by kind."""
    line_of_port: dict[str | int, tuple[str, int]] = field(default_factory=dict)
    """The file and the line that state each port, by its number."""

    def compare(self, claims: Sequence[Claim]) -> None:
        """Compare the claims that the files make with the expected ones."""
        values = [tuple(map(self._with_port_number, claim.value)) for claim in claims]
        stated = set(zip((claim.kind for claim in claims), values, strict=True))
        for kind, expected in self.expected.items():
            self.missing[kind] = {value for value in expected if (kind, value) not in stated}
        confirmed: set[tuple[str, Value]] = set()
        for claim, value in zip(claims, values, strict=True):
            if claim.kind in PORT_KINDS:
                port = value[-1]
                self.line_of_port[port] = claim.file, claim.line
            if value in self.expected[claim.kind] and (claim.kind, value) not in confirmed:
                confirmed.add((claim.kind, value))
            else:
                self._add_wrong(claim, value)

    def add_missing(self, kinds: Iterable[str], folder: str) -> None:
        """Add a difference for each missing claim of some kinds, at its port if a line states that.

        Args:
            kinds: the kinds that the files have to claim in full.
            folder: the folder of the files.
        """
        for kind in sorted(kinds):
            for value in sorted(self.missing[kind], key=str):
                # The value of a claim about a port begins with the port; others with a text.
                file, line = self.line_of_port.get(value[0], (folder, 0))
                text = _claim_text(kind, self._with_port_name(value))
                self._add(kind, file, line, "nothing of it", text)

    def _add_wrong(self, claim: Claim, value: Value) -> None:
        """Add a difference for a wrong or repeated claim.

        If it is a wrong plain fact, the difference also names the right value. This value then
        counts as missing no more, as one difference is enough for both.

        Args:
            claim: the claim.
            value: its value, with the numbers of ports for their names.
        """
        if value in self.expected[claim.kind]:
            in_tables = "once"
        elif (correct := self._correct_value(claim.kind, value)) is not None:
            in_tables = _claim_text(claim.kind, self._with_port_name(correct))
            self.missing[claim.kind].discard(correct)
        else:
            in_tables = "none such"
        text = _claim_text(claim.kind, claim.value)
        self._add(claim.kind, claim.file, claim.line, text, in_tables)

    def _correct_value(self, kind: str, value: Value) -> Value | None:
        """The missing value about the same thing as that of a wrong plain fact, if there is one.

        The last part of a plain fact's value is what is stated; the parts before say about which
        thing.
        """
        if kind not in FACTS:
            return None
        *subject, _ = value
        missing = self.missing[kind]
        return next((other for other in missing if other[:-1] == tuple(subject)), None)

    def _add(self, kind: str, file: str, line: int, stated: str, in_tables: str) -> None:
        """Add a difference; a plain fact may be accepted as the user's own statement.

        Args:
            kind: the kind of the claim.
            file: the file that states it.
            line: the line; 0: only the file is known.
            stated: what the file states, in words.
            in_tables: what the tables have, in words.
        """
        if kind in FACTS:
            self.differences.add_statement(file, line, stated, in_tables)
        else:
            self.differences.add(file, line, stated, in_tables)

    def _with_port_number(self, part: str | int) -> str | int:
        """A part of a claim's value; for the name of a port its number, -1 if there is none."""
        return self.number_of.get(str(part), -1) if isinstance(part, Interface) else part

    def _with_port_name(self, value: Value) -> Value:
        """The value of a claim with the name of the port that it begins with."""
        port, *further = value
        if isinstance(port, int) and further:
            return (self.names[port - 1], *further)
        return value


def _claim_text(kind: str, value: Iterable[str | int]) -> str:
    """A claim in words."""
    return f"{kind} {' '.join(map(str, value))}"
