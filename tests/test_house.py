"""The house itself: rooms and their arrows, file sizes, nothing of one machine in tracked files."""

import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import grimp
import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parent.parent
ARROWS = [
    "extensions",
    "polarfab",
    "mininet_scenarios",
    "controller",
    "compilers",
    "inventory | templates",
]
REGISTRIES = re.compile(
    r"\b(pypi\.org|pythonhosted\.org|registry\.npmjs\.org|registry\.yarnpkg\.com|deb\.debian\.org"
    r"|archive\.ubuntu\.com|proxy\.golang\.org|crates\.io)\b|--?(extra-)?index-url|--find-links"
)
MACHINE_PATHS = re.compile(r"(?<![\w./>$}-])/(home|root|work|workspace|Users)/[\w.]")


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that is, or is about to be, in version control."""
    # The checkout may belong to another user than the one who runs the tests (CI as root).
    git = ["git", "-c", "safe.directory=*", "-C", ROOT]
    command = [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return tuple(path for name in listing.split("\0") if name and (path := ROOT / name).is_file())


def lines_matching(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    """Every line that the pattern finds, as file:line: text."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_rooms_are_known_to_every_tool(project: dict) -> None:
    tool = project["tool"]
    beside = {
        name.removeprefix("/") for name in tool["hatch"]["build"]["targets"]["sdist"]["exclude"]
    }
    packages = {path.parent.name for path in tracked() if path.match(f"{ROOT}/*/__init__.py")}
    rooms = packages - beside
    layers = [name for layer in ARROWS for name in layer.split(" | ")]
    assert rooms == set(layers)
    assert rooms == set(tool["hatch"]["build"]["targets"]["wheel"]["packages"])
    assert rooms == set(tool["mypy"]["packages"])
    assert rooms == set(tool["importlinter"]["root_packages"])


def test_nothing_else_stands_at_the_top(project: dict) -> None:
    """An export that a test had written into the checkout was committed as a folder of its own."""
    beside = {".ci", "benchmarks", "docs", "examples", "manual", "tests"}
    folders = {path.relative_to(ROOT).parts[0] for path in tracked() if path.parent != ROOT}
    assert folders == beside | {*project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]}


def test_no_imports_form_a_circle(project: dict) -> None:
    """Imports for types and inside functions included."""
    rooms = project["tool"]["importlinter"]["root_packages"]
    graph = grimp.build_graph(*rooms, cache_dir=None)
    imports = nx.DiGraph(
        (module, other)
        for module in graph.modules
        for other in graph.find_modules_directly_imported_by(module)
    )
    assert imports.number_of_edges() > 1000
    assert [c for c in nx.strongly_connected_components(imports) if len(c) > 1] == []


def test_no_registry_is_named() -> None:
    paths = [path for path in tracked() if path != Path(__file__)]
    assert lines_matching(REGISTRIES, paths) == []


def test_no_path_of_a_machine() -> None:
    assert lines_matching(MACHINE_PATHS, list(tracked())) == []


def test_constraints_are_names_and_versions() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert len(pins) > 50
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.]+( ; .+)?", pin)] == []


def test_long_cases_are_cases_that_there_are() -> None:
    """A renamed test would run in `make test` again, without a word."""
    for case in (ROOT / "tests/long_cases.txt").read_text().splitlines():
        file, _, function = case.partition("::")
        assert f"def {function.partition('[')[0]}(" in (ROOT / file).read_text(), case


def test_make_n_prints_only(tmp_path: Path) -> None:
    """A recipe that names MAKE runs under -n, too, and with .ONESHELL the whole of it does."""
    for name in ("pyproject.toml", "constraints.txt", "build-constraints.txt"):
        (tmp_path / name).touch()
    stub = tmp_path / ".venv/bin/pytest"
    stub.parent.mkdir(parents=True)
    stub.write_text("#!/bin/sh\necho it ran\n")
    stub.chmod(0o755)
    command = ["make", "-n", "-f", ROOT / "Makefile", "-C", tmp_path, "test"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert ".venv/bin/pytest -n" in printed
    assert "it ran" not in printed


def test_the_demo_installs_only_what_it_needs(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "constraints.txt", "build-constraints.txt"):
        (tmp_path / name).touch()
    command = ["make", "-n", "-f", ROOT / "Makefile", "-C", tmp_path]
    demo, test = (
        subprocess.run([*command, goal], capture_output=True, text=True, check=True).stdout
        for goal in ("demo", "test")
    )
    assert "--editable '.[ryu,mininet,http]'" in demo
    assert "--group dev" not in demo
    assert "--group dev" in test


def test_ci_runs_what_the_readme_says() -> None:
    script = (ROOT / ".ci/run").read_text().splitlines()
    assert [line for line in script if line.startswith("make ")] == [
        "make checks",
        "make test",
        "make test-versions",
    ]
    assert (ROOT / ".ci/run").stat().st_mode & 0o100
