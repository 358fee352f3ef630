"""What a new user runs into in the first hours: messages, lists and suggestions that hold."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

import click
import pytest

from compilers.spec.features import MARKS, TRANSIT
from polarfab.cli import cli
from polarfab.output.next_steps import next_lines
from polarfab.verb_list import verb_names
from tests.polarfab.conftest import Run

ROOT = Path(__file__).parents[2]


@pytest.fixture
def lab(polarfab: Run, tmp_path: Path) -> Path:
    """A compiled fabric whose switches have no management address."""
    (tmp_path / "fabric.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 3}\n")
    assert (
        polarfab("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "build", "--quick")[0] == 0
    )
    return tmp_path / "build"


def test_init_says_which_figures_have_fitted_weights(polarfab: Run, tmp_path: Path) -> None:
    assert polarfab("init", tmp_path / "lab", "polarfly", "--q", 3)[0] == 0
    text = (tmp_path / "lab" / "fabric.yaml").read_text()
    guarantees_nothing = [line for line in text.splitlines() if line.endswith(" –")]
    assert guarantees_nothing
    assert all("demand:" in line for line in guarantees_nothing)
    assert "# With `demand`, the weights are fitted to each traffic." in text


@pytest.mark.parametrize(
    ("family", "feature"), [(("polarfly", "--q", 7), MARKS), (("fat-tree", "k=2"), TRANSIT)]
)
def test_init_names_every_target_of_its_balance(
    polarfab: Run, tmp_path: Path, family: tuple[str, ...], feature: str
) -> None:
    assert polarfab("init", tmp_path / "lab", *family, "--traffic", "any")[0] == 0
    text = " ".join((tmp_path / "lab" / "fabric.yaml").read_text().split("\n# "))
    said = re.search(r"fewer targets \((.*?)\)", text)
    assert said
    targets = json.loads(polarfab("targets", "--json")[1])
    able = {target["name"] for target in targets if feature in target["capabilities"]}
    assert able == set(re.findall(r"\w+", said[1])) & {target["name"] for target in targets}


def test_compile_is_quiet_when_asked(polarfab: Run, lab: Path) -> None:
    spec, planes = lab.parent / "fabric.yaml", lab.parent / "planes.yaml"
    planes.write_text(spec.read_text() + "planes: 2\n")
    for file in (spec, planes):
        words = ("compile", file, "-o", lab.parent / file.stem, "--quiet")
        assert polarfab(*words) == (0, "", "")
        assert json.loads(polarfab(*words, "--json")[1])["fabric"] == "lab"


def test_explain_claims_nothing_of_a_failure_that_loses_packets(polarfab: Run, lab: Path) -> None:
    assert "nothing down" not in polarfab("explain", lab, "0", "12")[1]
    via = json.loads(polarfab("explain", lab, "0", "12", "--json")[1])["minimal"][1]
    code, out, _ = polarfab("explain", lab, "0", "12", "--fail", str(via))
    assert code == 1
    assert "lost: no port is left" in out
    assert "proved of every pair, with nothing down, by walk: delivery" in out
    assert "`protect: none`: while something is down, packets may be lost" in out


@pytest.mark.parametrize("verb", ["", *verb_names()])
def test_help_fits_80_columns(polarfab: Run, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command = cli.get_command(click.Context(cli), verb) if verb else None
    parts = [[verb] * bool(verb)]
    if isinstance(command, click.Group):
        parts += [[verb, part] for part in command.commands]
    for words in parts:
        code, out, _ = polarfab(*words, "--help")
        assert code == 0
        assert [line for line in out.splitlines() if len(line) > 80] == []


def test_what_render_suggests_works(polarfab: Run, lab: Path) -> None:
    out = lab.parent / "out"
    assert polarfab("render", lab, "--target", "frr", "-o", out)[0] == 0
    (line,) = next_lines("render", {"folder": lab, "target": "frr", "output": out})
    assert polarfab(*line.split()[1:])[0] == 0


def test_push_says_what_a_switch_without_an_address_lacks(polarfab: Run, lab: Path) -> None:
    ssh = "sh -c 'echo ssh: Could not resolve hostname n0 >&2; exit 255'"
    code, _, err = polarfab("push", lab, "--target", "frr", "--dry-run", "--run", ssh)
    assert code == 1
    assert "required a `management` address in the inventory, given none for 0 and others" in err
    assert err.endswith("add it, or compare saved tables: polarfab check routes\n")


def test_push_shows_no_log_of_the_drivers(
    polarfab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    pytest.importorskip("napalm")
    build = tmp_path / "build"
    polarfab("init", tmp_path / "lab", "polarfly", "--q", "3")
    assert polarfab("compile", tmp_path / "lab/fabric.yaml", "-o", build, "--quick")[0] == 0

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr(socket, "gethostbyname", unknown)
    code, _, err = polarfab("push", build, "--target", "eos", "--dry-run")
    assert code == 1
    assert "given none for n0 and others" in err
    assert [record for record in caplog.records if record.exc_info] == []


def test_the_manual_names_what_there_is() -> None:
    cluster = (ROOT / "docs/how-to/verify.md").read_text()
    context = click.Context(cli)
    shared = {
        verb
        for verb in verb_names()
        if "--scheduler" in {w for p in cli.get_command(context, verb).params for w in p.opts}
    }
    assert {verb for verb in shared if f"| `{verb}` |" not in cluster} == set()
    opensm = (ROOT / "docs/targets/opensm.md").read_text()
    recipes = re.findall(r"^\$ polarfab render .*opensm.*made-up(?!.*lmc).*$", opensm, re.M)
    assert [line for line in recipes if "--set folder=" not in line] == []
    assert len(recipes) == 1


def test_the_tutorial_installs_as_the_readme_does() -> None:
    pages = [(ROOT / name).read_text() for name in ("README.md", "docs/tutorial.md")]
    commands = r"^\$ make demo .*\n\$ [.] [.]venv/bin/activate"
    assert [len(re.findall(commands, page, re.M)) for page in pages] == [1, 1]


def test_targets_prints_features_of_systems_and_none_of_tools(polarfab: Run) -> None:
    printed = {name: polarfab("targets", name)[1] for name in ("opensm", "ansible", "containerlab")}
    assert [name for name, text in printed.items() if "can do" in text] == ["opensm"]
    tools = [
        target["name"] for target in json.loads(polarfab("targets", "--json")[1]) if target["tool"]
    ]
    assert tools == ["ansible", "containerlab"]


def test_init_makes_one_host_a_switch_as_its_help_says(polarfab: Run, tmp_path: Path) -> None:
    words = " ".join(polarfab("init", "--help")[1].split())
    assert "Hosts per switch; by default 1." in words
    assert polarfab("init", tmp_path / "lab", "polarfly", "--q", "3")[0] == 0
    assert "hosts_per_node: 1" in (tmp_path / "lab" / "fabric.yaml").read_text()
