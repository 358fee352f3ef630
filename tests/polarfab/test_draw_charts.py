"""`polarfab draw --show`: options that belong together, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.polarfab.conftest import Run


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("build --pattern tornado", "--pattern belongs to --show load"),
        ("build --show load --from build", "--from belongs to --show rounds"),
        (
            "build --show racks --mark A1",
            "--mark belongs to --show fabric",
        ),
        ("build --show rounds", "--from: required the build that the switches hold"),
        ("build --show load --pattern tornadoo", "did you mean tornado?"),
        ("--show moore --mark A1", "--mark belongs to --show fabric"),
        ("polarfly --q 3 --show load", "required a fabric.yaml or a build for --show load"),
    ],
)
def test_what_does_not_fit_is_refused(
    words: str, message: str, polarfab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fabric.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 3}\n")
    named = words.replace("build", "fabric.yaml")
    code, _, err = polarfab("draw", *named.split(), "-o", "chart.svg")
    assert code == 2
    assert message in " ".join(err.split())
    assert not Path("chart.svg").exists()
