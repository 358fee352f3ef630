"""What is said where the tables do not repair all that `protect` promises."""

from __future__ import annotations

from pathlib import Path

import pytest

SPARSE = "{family: jellyfish, nodes: 20, degree: 3, seed: 1}"


@pytest.mark.parametrize(
    ("topology", "protect", "said"),
    [
        (
            SPARSE,
            "link",
            (
                "with 0-",
                "try `balance: ecmp` with `transit: ecmp`, which protects more graphs, add links "
                "(0 and 19 more have 3), or write `protect: none` and leave repairs to the",
            ),
        ),
        (
            "{family: mlfm, n: 4}",
            "node",
            ("with 12 down, packets between", "write `protect: link`, which holds, or try"),
        ),
    ],
)
def test_a_failure_and_remedies_are_named(
    topology: str, protect: str, said: tuple[str, ...], polarfab, tmp_path: Path
) -> None:
    text = f"name: lab\ntopology: {topology}\nrouting: {{protect: {protect}}}\n"
    (tmp_path / "fabric.yaml").write_text(text)
    code, _, error = polarfab("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "b")
    assert code == 1
    assert "the build is not usable" in error
    for words in said:
        assert words in error.replace("\n", " ")


def test_the_remedy_helps(polarfab, tmp_path: Path) -> None:
    text = "name: lab\ntopology: {family: mlfm, n: 4}\n"
    text += "routing: {balance: ecmp, transit: ecmp, protect: node}\n"
    (tmp_path / "fabric.yaml").write_text(text)
    assert polarfab("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "b")[0] == 0


def test_pairs_that_a_failure_cuts_off_count_as_ends_of_legs(polarfab, tmp_path: Path) -> None:
    """Two triangles joined by one link: packets over an intermediate beyond the link are lost."""
    (tmp_path / "graph.csv").write_text("0 1\n1 2\n2 0\n2 3\n3 4\n4 5\n5 3\n")
    text = "name: lab\ntopology: {family: graph, file: graph.csv}\n"
    (tmp_path / "fabric.yaml").write_text(text + "routing: {balance: valiant, protect: link}\n")
    code, _, error = polarfab("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "b")
    assert code == 1
    assert "18 pairs are lost, kind of failure: link" in error.replace("\n", " ")
    assert "packets by an intermediate of another part are lost" in error.replace("\n", " ")
    (tmp_path / "fabric.yaml").write_text(text + "routing: {protect: link}\n")
    assert polarfab("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "c")[0] == 0
