"""The engine and its grammars: order, sections, definitions, and what no rule reads."""

from dataclasses import dataclass, field

import pytest

from compilers.readers.grammar.rules import Grammar
from compilers.readers.grammar.text_engine import TextEngine
from compilers.readers.grammar.trees import tree_lines
from compilers.readers.text_lines import TextLines
from inventory.problems import InputError

GRAMMAR = Grammar.of(r"""
%comment !
vrf <vrf>                         => define vrf <vrf>
  route <prefix> <gateway>        => route inside <gateway>
port <name>                       => note <name>
  routed                          => define routed <name>; must unless access <name>
  access <vlan#>                  => define access <name>; wants vlan <vlan>
  address <a...>                  => needs routed <name>; absent access <name>; note <name> <a>
vlan <n#>                         => define vlan <n>
routing                           => iff routed eth1 & vrf red
route <prefix> <gateway>[ via <port>] => route main <gateway> <port>
policy **
end                               => last
""")
CLOSED = Grammar.of("""
%close exit
%close exit-vrf vrf
vrf <vrf>
 route <prefix> <gateway> => route inside <gateway>
router **
name <name>
""")


@dataclass
class Notes:
    """What the engine tells: lines with a letter before them."""

    told: list[str] = field(default_factory=list)

    def add_wrong(self, line: int, text: str) -> None:
        self.told.append(f"{line} wrong: {text}")

    def add_unread(self, line: int, text: str) -> None:
        self.told.append(f"{line} unknown: {text}")

    def next_hop(self, place, kind, *words):  # noqa: ARG002
        return kind, " ".join(words).strip()

    def note(self, place, *words: str) -> None:
        self.told.append(f"{place.line} {' '.join(words)}")


def read(text: str, of: Grammar = GRAMMAR) -> tuple[list[str], TextEngine]:
    notes = Notes()
    engine = TextEngine(of, notes)
    engine.read(TextLines.of(text.encode()))
    return [told for told in notes.told if not told.split(" ", 1)[1].startswith("eth")], engine


PORT = "port eth1\n  routed\n  address a b\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (PORT, []),
        ("! a\n\nport eth1\n! b\n  routed\n", []),
        ("port eth1\n  address a\n  routed\n", ["2 wrong: address a, before routed eth1"]),
        ("port eth1\n", ["1 wrong: port eth1 without routed"]),
        (PORT + "  access 3\nvlan 3\n", []),
        (PORT + "  access 3\n", ["4 wrong: access 3, without vlan 3"]),
        (PORT + "  other\n    inside\n", ["4 unknown: other", "5 unknown: inside"]),
        (PORT + "  no routed\n", ["4 wrong: no routed"]),
        ("  routed\n", ["1 unknown: routed"]),
        ("vrf red\n" + PORT, ["1 wrong: no line routing"]),
        ("routing\n", ["1 unknown: routing"]),
        ("vrf red\n" + PORT + "routing\n", []),
        (
            "vrf red\nroute 10.0.0.0/8 a\n",
            ["2 wrong: route 10.0.0.0/8 a, which is read as part of vrf red"],
        ),
        ("  route 10.0.0.0/8 a\n", ["1 unknown: route 10.0.0.0/8 a"]),
        ("route 10.0.0.0/8 a b\n", ["1 wrong: route 10.0.0.0/8 a b"]),
        ("end\nvlan 3\n", ["2 wrong: vlan 3, behind end"]),
        ("end\nroute 10.0.0.0/8 a\n", ["2 wrong: route 10.0.0.0/8 a, behind end"]),
    ],
)
def test_what_the_engine_tells(text: str, told: list[str]) -> None:
    assert read(text)[0] == told


def test_routes_and_statements() -> None:
    text = "vrf red\n  route 1 a\n   route 2 b\nvlan 1\nroute 1 a via eth1\nroute 2 a\n"
    told, engine = read(text + "policy p\n  one\n    two\n  three\n")
    assert not told
    assert list(engine.routes["inside"].rows("a", "b")) == [("1", "a", 2), ("2", "b", 3)]
    assert list(engine.routes["main"].rows("a", "a eth1")) == [("1", "a eth1", 5), ("2", "a", 6)]
    statements = ["policy p", "policy p / one", "policy p / one / two", "policy p / three"]
    assert list(engine.statement_lines) == statements


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("vrf a\n route 1 b\nexit-vrf\nname c\n", []),
        ("vrf a\n route 1 b\nname c\n", ["3 wrong: name c, before vrf a is ended"]),
        ("vrf a\nexit-vrf\n route 1 b\n", ["3 unknown: route 1 b"]),
        ("router a\nexit-vrf\n", ["2 wrong: exit-vrf, where no section vrf is open"]),
        ("exit\n", ["1 wrong: exit, where no section is open"]),
        ("router a\n b\n  c\n exit\nexit\nname d\n", []),
        ("router a\n b\n  c\n d\nexit\n", ["4 wrong: d, before b is ended"]),
    ],
)
def test_sections_that_a_word_ends(text: str, told: list[str]) -> None:
    assert read(text, CLOSED)[0] == told


def test_what_stands_behind_the_end_of_a_section_is_of_the_one_around_it() -> None:
    told, engine = read("router a\n b\n  c\n exit\n  c\nexit\n", CLOSED)
    assert not told
    statements = ["router a", "router a / b", "router a / b / c", "router a / c"]
    assert list(engine.statement_lines) == statements


JSON = """{
  "a": {"x y": true, "of": []},
  "list": [
    {"name": "one", "n": 1},
    {"name": "one", "n": "1"},
    {"odd": 2},
    "text"
  ],
  "routes": {
    "10.0.0.0/8": {"b": "2", "a": "1"}
  }
}
"""
YAML = '- set:\n    a:\n      b: off\n    routes:\n      "10.0.0.0/8": {via: {x: {}}}\n'


def test_a_tree_is_lines_with_the_numbers_of_its_keys() -> None:
    assert list(tree_lines(JSON, ["routes"])) == [
        (2, "a"),
        (2, ' "x y" true'),
        (2, " of []"),
        (4, "list one"),
        (4, " n 1"),
        (5, "list one again"),
        (5, ' n "1"'),
        (6, "list without a name"),
        (6, " odd 2"),
        (7, 'list - "text"'),
        (10, 'routes 10.0.0.0/8 {"a": "1", "b": "2"}'),
    ]
    assert list(tree_lines('{"routes": ["odd", 3]}', ["routes"])) == [
        (1, 'routes - "odd"'),
        (1, "routes - 3"),
    ]
    lines = [(2, "a"), (3, ' b "off"'), (5, 'routes 10.0.0.0/8 {"via": {"x": {}}}')]
    assert list(tree_lines(YAML, ["routes"], in_yaml=True)) == lines
    with pytest.raises(ValueError, match="a twice in a mapping") as error:
        tree_lines("a: {}\nb: {}\na: {}\n", [], in_yaml=True)
    assert error.value.args[0] == 3


def test_a_verb_that_nobody_carries_out_is_named() -> None:
    engine = TextEngine(Grammar.of("name <name> => noted <name>"), Notes())
    with pytest.raises(InputError) as error:
        engine.read(TextLines.of(b"name x\n"))
    assert str(error.value) == (
        "grammar, rule `name <name>`: required a verb of the engine or of Notes, given noted; "
        "write note"
    )
