"""Rendered text is what the device reads, character by character.

Other characters than printable ASCII, carriage returns, and numbers that Python and a device read
otherwise are differences wherever they are in a statement. In a comment they may stay, where no
device ends the comment there.
"""

import ast
import re
from itertools import cycle
from pathlib import Path

import pytest

from compilers.readers.exact_text import (
    exact_address,
    exact_lines,
    exact_network,
    exact_number,
    exact_words,
    is_number,
    read_exact,
    strange,
    visible,
)
from compilers.readers.grammar.yaml_tree import yaml_node
from compilers.readers.strict_json import JsonError, parse
from compilers.targets.target_lookup import target
from tests.compilers.readers.emitted import fabric, write

ROOT = Path(__file__).parents[3]
STRANGE = "\r\x00\x0b\x0c\x1c\x1b\x7f\x85\xa0\xad\u0661\u2003\u2028\u200b\ufeff"


def test_numbers_are_plain_decimals() -> None:
    assert [exact_number(text) for text in ("0", "7", "4294967296")] == [0, 7, 1 << 32]
    for text in (
        "",
        "017",
        "00",
        "+5",
        "-1",
        "1_000",
        " 5",
        "5\n",
        "\u0661",
        "0x1f",
        "1e3",
        "best",
    ):
        assert not is_number(text), text
        with pytest.raises(ValueError, match="which is no number"):
            exact_number(text)


def test_lines_end_at_newlines_and_words_at_blanks(tmp_path: Path) -> None:
    text = "a\u2028b\x0bc\r\nd\x85\te\xa0f g\n"
    (tmp_path / "t").write_bytes(text.encode() + b"\xff")
    assert exact_lines(read_exact(tmp_path / "t")) == [
        "a\u2028b\x0bc\r",
        "d\x85\te\xa0f g",
        "\ufffd",
    ]
    assert exact_words("  a\t b\xa0c\r ") == ["a", "b\xa0c\r"]
    assert exact_lines("") == []
    assert exact_lines("a\n\n") == ["a", ""]


def test_every_strange_character_is_seen_and_shown() -> None:
    assert strange("plain\ttext ~\n") is None
    assert all(strange(f"a{character}b") for character in STRANGE)
    assert visible("a\xa0b\rc\u2028\U0001f600") == "a\\xa0b\\x0dc\\u2028\\U0001f600"


def test_addresses_are_read_as_devices_read_them() -> None:
    assert str(exact_network("10.0.0.0/24")) == "10.0.0.0/24"
    assert str(exact_address("fd00::1")) == "fd00::1"
    for text in ("10.0.0.0/024", "10.0.0.0/255.255.255.0", "10.0.0.0/0.0.0.255", "10.0.0.0/\u0662"):
        with pytest.raises(ValueError, match="which is no address"):
            exact_network(text)
    with pytest.raises(ValueError, match="which is no address"):
        exact_address("fe80::1%eth0")


def test_json_and_yaml_that_only_python_takes() -> None:
    digits = "9" * 5000
    for text in ('{"a": NaN}', '{"a": -Infinity}', "\ufeff{}", "[" * 100_000, f"[{digits}]"):
        with pytest.raises(JsonError, match="no JSON"):
            parse(text)
    for text in ("[" * 100_000, "- " * 50_000, "a: " + "{b: " * 100):
        with pytest.raises(ValueError, match="too deep"):
            yaml_node(text)


FORBIDDEN = {"splitlines", "isdigit", "isdecimal", "isnumeric", "isspace", "read_text"}
BLANK_BY_DEFAULT = {"strip", "lstrip", "rstrip", "split", "rsplit"}
ROOMS = [
    *(ROOT / "compilers" / "readers").rglob("*.py"),
    *(ROOT / "compilers" / "targets").rglob("reader.py"),
    ROOT / "compilers" / "targets" / "eos" / "avd.py",
    *(ROOT / "extensions").rglob("*_text.py"),
    *(ROOT / "extensions").rglob("*_check.py"),
    *(ROOT / "extensions" / "lossless").glob("*_priorities.py"),
    ROOT / "extensions" / "lossless" / "eos_priority_lines.py",
]
ELSEWHERE = {"devices", "exact_text.py"}
"""Outputs of commands are read with more tolerance."""


def test_readers_use_these_functions_alone() -> None:
    found = []
    for file in ROOMS:
        if ELSEWHERE & {*file.parts}:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute):
                name = node.attr
                plain = name in BLANK_BY_DEFAULT and _called_without(node, file)
                if name in FORBIDDEN or plain:
                    found.append(f"{file.relative_to(ROOT)}:{node.lineno}: {name}")
    assert found == []
    assert len(ROOMS) > 40


def _called_without(node: ast.Attribute, file: Path) -> bool:
    line = file.read_text().split("\n")[node.end_lineno - 1]
    return line[node.end_col_offset :].startswith("()")


CASES = {
    "ovs": ("repaired", {}, "#"),
    "linux": ("repaired", {}, "#;"),
    "frr": ("minimal", {}, "#!;"),
    "sonic": ("minimal", {}, "#!"),
    "eos": ("minimal", {}, "!"),
    "nxos": ("minimal", {}, "!"),
    "junos": ("minimal", {}, "#"),
    "bird": ("minimal", {}, "#;"),
    "srlinux": ("minimal", {}, ""),
    "nvue": ("minimal", {}, ""),
}
PLACES = ("start", "gap", "inside", "end")


def placed(line: str, place: str, character: str) -> str:
    """The line with a character at a place: before it, for a blank, in its last word, behind it."""
    if place == "start":
        return character + line
    if place == "end":
        return line + character
    at = (len(line) + line.rfind(" ")) // 2 + 1
    if place == "gap" and " " in line.strip():
        blank = line.rindex(" ")
        return line[:blank] + character + line[blank + 1 :]
    return line[:at] + character + line[at:]


@pytest.mark.parametrize("name", CASES)
def test_a_strange_character_anywhere_is_a_difference(name: str, tmp_path: Path) -> None:
    """One in each kind of line at each place, each of the characters in turn."""
    form, options, comment = CASES[name]
    build = fabric(form)
    write(name, build, tmp_path, options)
    folder = tmp_path / build.wiring.names[0]
    characters, tried = cycle(STRANGE), 0

    def differs() -> bool:
        return target(name).check_emitted(build, tmp_path, options, only={0}).differences > 0

    assert not differs()
    for file in sorted(folder.iterdir()):
        text = file.read_text()
        lines = text.split("\n")[:-1]
        kinds = {re.sub("[0-9a-f]+", "#", line): at for at, line in enumerate(lines) if line}
        for at in list(kinds.values())[:3]:
            says = lines[at].strip()[0] not in comment
            for place in PLACES if says else ("end",):
                new = [*lines]
                new[at] = placed(lines[at], place, next(characters))
                file.write_bytes("\n".join([*new, ""]).encode())
                assert differs() or not says, (file.name, at + 1, ascii(new[at]))
                tried += 1
        for whole in (text.replace("\n", "\r\n"), f"\ufeff{text}", "[" * 100_000):
            file.write_bytes(whole.encode())
            assert differs() or all(line[:1] in ("", *comment) for line in lines), file.name
        file.write_text(text)
    assert not differs()
    assert tried > 8


NUMBERS = {
    ("ovs", "groups.txt"): (
        r"group_id=(\d+)",
        r"weight:(\d+)",
        r"watch_port:(\d+)",
        r"output:(\d+)",
    ),
    ("ovs", "flows.txt"): (r"metadata:(\d+)", r"group:(\d+)", r"in_port=(\d+)", r"priority=(\d+)"),
    ("linux", "routes.batch"): (
        r"id (\d+)",
        r"metric (\d+)",
        r"group (\d+)",
        r"table (\d+)",
        r"/(\d+)",
    ),
    ("linux", "rules.batch"): (r"lookup (\d+)", r"pref (\d+)"),
    ("linux", "sysctl.conf"): (r"= (\d+)",),
    ("frr", "frr.conf"): (r"/(\d+) ",),
    ("eos", "eos.cfg"): (r"ip route \S+/(\d+)",),
    ("nvue", "startup.yaml"): (r"/(\d+)\"",),
}
"""Numbers in a file, each where a device may read another one behind a zero."""


@pytest.mark.parametrize(("name", "file"), NUMBERS)
def test_a_number_with_a_zero_before_it_is_a_difference(
    name: str, file: str, tmp_path: Path
) -> None:
    """Of `group_id=017` Open vSwitch makes group 15, and `ip` of `/024` 20 bits."""
    form, options, _ = CASES[name]
    build = fabric(form)
    write(name, build, tmp_path, options)
    path = tmp_path / build.wiring.names[0] / file
    text = path.read_text()
    tried = 0
    for pattern in NUMBERS[name, file]:
        if match := re.search(pattern, text):
            path.write_text(f"{text[: match.start(1)]}0{text[match.start(1) :]}")
            report = target(name).check_emitted(build, tmp_path, options, only={0})
            assert report.differences, pattern
            tried += 1
    assert tried


SCRIPT_FAULTS = {
    "! true\n": "a command that is negated is no comment",
    "echo \\ \n": "a blank behind a backslash: the command does not go on",
}


@pytest.mark.parametrize("line", SCRIPT_FAULTS, ids=SCRIPT_FAULTS.values())
def test_a_script_has_its_own_lines_alone(line: str, tmp_path: Path) -> None:
    build = fabric("minimal")
    write("linux", build, tmp_path)
    script = tmp_path / build.wiring.names[0] / "load.sh"
    text = script.read_text()
    script.write_text(text + "# a comment\n\n")
    assert target("linux").check_emitted(build, tmp_path, only={0}).differences == 0
    script.write_text(text + line)
    assert target("linux").check_emitted(build, tmp_path, only={0}).differences == 1


def test_bytes_that_are_no_text_have_their_file_and_line(tmp_path: Path) -> None:
    build = fabric("minimal")
    write("nvue", build, tmp_path)
    file = tmp_path / build.wiring.names[0] / "startup.yaml"
    file.write_bytes(file.read_bytes() + b"\x07\xff\n")
    (example,) = target("nvue").check_emitted(build, tmp_path, only={0}).examples
    lines = file.read_bytes().count(b"\n")
    assert (example.file, example.line) == (str(file), lines)
    assert example.says == "the character \\x07"
