"""YAML as plain data that knows its lines."""

import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from inventory.problems import InputError, Problem, few, shown
from inventory.yamlfile import from_values, read

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.integers(-(10**15) + 1, 10**15 - 1) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=30)
@given(data=st.dictionaries(WORDS, VALUES, min_size=1), flow=st.booleans())
def test_what_was_dumped_is_read(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, object], flow: bool
) -> None:
    file = tmp_path_factory.getbasetemp() / "dumped.yaml"
    text = yaml.safe_dump(data, default_flow_style=flow, allow_unicode=True, sort_keys=False)
    file.write_text(text, encoding="utf-8", newline="")
    expected = {key: value for key, value in data.items() if key != "<<"}
    if "<<" not in text:
        assert read(file).data == expected


def test_lines_of_values_and_of_what_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(
        "# a comment\n\ntypes: &t\n  leaf:\n    ports: [1,\n      2]\nnodes:\n"
        "  - {name: a}\n  - name: b\n    type:\n      leaf\nsame: *t\nmore:\n  <<: *t\n  x: 1\n"
    )
    document = read(file)
    assert document.line(()) == 3
    assert document.line(("types", "leaf", "ports", 1)) == 6
    assert document.line(("nodes", 1, "type")) == 10
    assert document.line(("nodes", 1, "missing", "deeper")) == 9
    assert document.line(("nodes", 7)) == 7
    assert document.line(("same", "leaf")) == 4
    assert document.line(("more", "leaf")) == 4
    assert document.data["more"] == {"x": 1, "leaf": {"ports": [1, 2]}}


def test_keys_of_a_merge_give_way_to_those_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  z: 3\n  <<: [*a, *b]\n")
    assert read(file).data["c"] == yaml.safe_load(file.read_text())["c"] == {"x": 1, "y": 1, "z": 3}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(("7", 7), ("-7", -7), ("0", 0), ("~", None), ("null", None), ("", None)),
        *(
            (word, word)
            for word in ("7.0", "yes", "true", "007", "0x10", "1_000", "12:30:45", "1e3")
        ),
        *(('"7"', "7"), ("'~'", "~"), ("-0", "-0"), ("9" * 16, "9" * 16)),
    ],
)
def test_scalars(tmp_path: Path, written: str, value: object) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(f"key: {written}\n")
    found = read(file).data["key"]
    assert (found, type(found)) == (value, type(value))


def test_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbfname: lab\r\nq: 7\r\n")
    document = read(file)
    assert document.data == {"name": "lab", "q": 7}
    assert document.line(("q",)) == 2


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal is played."""

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(InputError, match="a file without permission to read it; change its mode"):
        read(tmp_path / "a.yaml")


def test_without_the_c_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "CSafeLoader")
    file = tmp_path / "a.yaml"
    file.write_text("a: [1, {b: c}]\n")
    assert read(file).data == {"a": [1, {"b": "c"}]}
    for wrong in ("a: [1\n", "a: \x07\n", "a: b: c\n", "\tx: 1\n"):
        file.write_text(wrong)
        with pytest.raises(InputError, match=r"a\.yaml:"):
            read(file)


def test_deep_nesting_does_not_exhaust_the_stack(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    for opening in ("[", "{a: ", "- "):
        file.write_text(opening * (sys.getrecursionlimit() * 20))
        with pytest.raises(InputError, match="at most 50 levels"):
            read(file)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (dict.fromkeys("abcde"), "a mapping with a, b, c, d, …"),
        ("\x1b[2J", "'\\x1b[2J'"),
        ("x" * 100, "x" * 47 + "…"),
    ],
)
def test_values_are_short_in_print(value: object, text: str) -> None:
    assert shown(value) == text


def test_many_alike_become_few() -> None:
    alike = [Problem("a type", str(i), file="f", line=i, key=f"nodes[{i}].type") for i in range(30)]
    other = Problem("a name", "b", file="f", line=5, key="name")
    kept = few([*alike, other])
    assert kept[:10] == alike[:10]
    assert str(kept[10]) == "f:10: nodes[…].type: required a type, given 20 more like these"
    assert kept[11:] == [other]


def test_numbers_of_numpy_are_numbers() -> None:
    values = {"q": np.int64(3), "at": [np.float32(0.5), np.bool_(True)], "text": np.str_("a")}
    assert from_values(values).data == {"q": 3, "at": [0.5, True], "text": "a"}
