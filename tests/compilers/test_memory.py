"""Fabrics too large for the machine are answered before the work begins."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from ast import literal_eval
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from compilers import estimates, memory
from compilers.estimates import Size, need
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.topology.families import edge_blocks, family_of
from extensions.simulation import simulate
from inventory.problems import InputError
from polarfab import Fabric, drawing, measures, topologies
from polarfab.cli import cli

SHAPES = (
    "{family: polarfly, q: 7}",
    "{family: polarstar, q: 5, supernode: inductive-quad, degree: 3}",
    "{family: polarstar, q: 4, supernode: paley, degree: 2}",
    "{family: pn, q: 4}",
    "{family: oft, q: 3}",
)


def fabric(folder: Path, topology: str, protect: str = "none") -> Path:
    file = folder / "fabric.yaml"
    file.write_text(f"name: lab\ntopology: {topology}\nrouting: {{protect: {protect}}}\n")
    return file


def machine(monkeypatch: pytest.MonkeyPatch, folder: Path, kilobytes: int) -> None:
    file = folder / "meminfo"
    file.write_text(f"MemTotal: 99999999999 kB\nMemAvailable:   {kilobytes} kB\n")
    monkeypatch.setattr(memory, "MEMINFO", file)


@pytest.mark.parametrize("protect", ["none", "link"])
@pytest.mark.parametrize("shape", SHAPES)
def test_sizes_by_formula_are_those_of_the_build(tmp_path: Path, shape: str, protect: str) -> None:
    loaded = load_fabric(fabric(tmp_path, shape, protect))
    build = compile_fabric(loaded)
    size = Size.of_spec(loaded.spec)
    assert size == replace(Size.of_build(build), graph=size.graph)
    assert size.stored == build.tables.routes.egress.nbytes > 0
    assert Size.of_topology(build.topology) == replace(size, graph=0, stored=0, spread=False)


@pytest.mark.parametrize("protect", ["none", "link"])
def test_rows_of_a_large_polarstar_are_computed(protect: str) -> None:
    """Stored ones of 532,608 switches would take gigabytes."""
    topology = {"family": "polarstar", "q": 64, "supernode": "inductive-quad", "degree": 63}
    spec = load_fabric({"name": "lab", "topology": topology, "routing": {"protect": protect}}).spec
    assert Size.of_spec(spec).stored == 0


def test_a_protected_fabric_of_16257_switches_is_not_refused_where_it_fits() -> None:
    """It was measured with 0.9 GB, and is refused below 1.2."""
    keys = {"name": "lab", "topology": {"family": "polarfly", "q": 127}}
    policy = {"balance": "compact-valiant", "protect": "node"}
    size = Size.of_spec(load_fabric({**keys, "routing": policy}).spec)
    assert 0.9e9 < need("compile", size) < 1.3e9


@pytest.mark.parametrize(
    ("q", "protect", "said"),
    [
        (509, "none", "259,591 switches, takes [0-9.]+ GB"),
        (251, "link", "63,253 switches, takes [0-9.]+ GB"),
        (1009, "none", r"1,019,091 switches, takes 1[0-9]{2}\.[0-9] GB"),
    ],
)
def test_too_large_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, q: int, protect: str, said: str
) -> None:
    machine(monkeypatch, tmp_path, 4_000_000)
    start = time.process_time()
    said += ", given 4.1 GB available; lower q"
    with pytest.raises(InputError, match=rf"fabric\.yaml:2: topology\.q: .*{said}"):
        compile_fabric(load_fabric(fabric(tmp_path, f"{{family: polarfly, q: {q}}}", protect)))
    assert time.process_time() - start < 1


Q7 = {"name": "lab", "topology": {"family": "polarfly", "q": 7}}
"""A fabric of 57 switches."""
SMALLER = "take a smaller fabric"


@pytest.mark.parametrize(
    ("work", "verb", "instead"),
    [
        ("compile", lambda _: Fabric.from_spec(Q7).compile(), "lower q"),
        ("topology", lambda _: topologies.topology("polarfly", q=7), "write edges"),
        ("topology", lambda _: Fabric.from_spec(Q7).topology, "write edges"),
        ("analyse load", lambda f: measures.analyse(f.topology, ["load"]), SMALLER),
        ("draw", lambda f: drawing.draw(f.topology), SMALLER),
        ("draw", lambda f: drawing.draw(f), SMALLER),
        ("draw load", lambda f: drawing.chart(f, "load"), SMALLER),
        ("verify", lambda f: f.verify(), "`quick`"),
        ("channels", lambda f: f.verify(channels=True), "`no_channels`"),
        ("throughput", lambda f: measures.throughput(f, ["uniform"]), "`pattern tornado`"),
        ("throughput flows", lambda f: measures.throughput(f, ["tornado"]), "balance: minimal"),
        ("simulate", lambda f: simulate(f, "tornado", [0.1]), "`hosts_per_node`"),
        ("render", lambda f: f.render("frr", "out", unverified=True, check=False), "`node NODE`"),
    ],
)
def test_each_verb_at_the_border(
    work: str,
    verb: Callable[[Fabric], object],
    instead: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    built = Fabric.from_spec(Q7).compile()
    family, made = Size.of_family("polarfly", Q7["topology"]), Size.of_build(built.build)
    monkeypatch.setitem(estimates.WORKS, work, replace(estimates.WORKS[work], memory=_gigabyte))
    kilobytes = need(work, family if work == "topology" else made) // 1024 + 1
    machine(monkeypatch, tmp_path, kilobytes)
    verb(built)
    machine(monkeypatch, tmp_path, kilobytes - 1)
    with pytest.raises(InputError, match=rf"57 switches, takes 1\.1 GB, given 1.*{instead}"):
        verb(built)


def _gigabyte(_size: Size) -> float:
    return 1e9


def test_edges_need_no_more_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, tmp_path, 1)
    assert next(edge_blocks("polarfly", {"q": 1009}))[0].tolist() == [0, 1]


def test_patterns_of_few_flows_need_memory_for_paths_not_for_pairs() -> None:
    """Of PolarFly's 16,257 switches: tornado by minimal paths is small, by all paths it is not."""
    classes = 16_257 * 256
    minimal = Size(family_of("polarfly"), 16_257, 128, shares=classes)
    spread = replace(minimal, spread=True, shares=classes * 128)
    assert need("throughput flows", minimal) < 1e9
    assert 10e9 < need("throughput flows", spread) < need("throughput", spread) - 20e9


ADDRESS_SPACE = """
import resource, sys
from compilers.memory import available
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]), resource.RLIM_INFINITY))
print(available())
"""


def test_a_limit_of_address_space_counts() -> None:
    """As `ulimit -v` sets it: what the process has already is not left."""
    for more, least in ((1 << 28, (1 << 28) - (1 << 25)), (1 << 60, 1 << 28)):
        command = [sys.executable, "-c", ADDRESS_SPACE, str(more)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert least < int(printed) <= more


def test_channels_are_left_out_unasked_where_they_do_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = Fabric.from_spec(Q7).compile()
    assert built.verify(channels=None).reports[0].channels
    machine(monkeypatch, tmp_path, 500_000)
    large = replace(estimates.WORKS["channels"], memory=_gigabyte)
    monkeypatch.setitem(estimates.WORKS, "channels", large)
    assert built.verify(channels=None).reports[0].channels is None


def test_time_is_told_in_minutes_and_hours() -> None:
    small, large = (Size.of_family("polarfly", {"q": q}) for q in (31, 127))
    assert estimates.long("analyse load", small) == ""
    assert re.fullmatch("about [0-9]+ minutes", estimates.long("analyse load", large))
    assert re.fullmatch("about [0-9]+ hours", estimates.long("analyse expansion", large))


@pytest.mark.parametrize(
    ("words", "work"),
    [
        ("verify build", "verify"),
        ("verify build --method walk", "verify walk"),
        ("throughput build --pattern tornado", "throughput flows"),
        ("render build --target frr -o configs --unverified", "render"),
        ("analyse polarfly --q 7 --what load", "analyse load"),
    ],
)
def test_minutes_are_announced(
    words: str, work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Fabric.from_spec(Q7).compile().save("build")
    monkeypatch.setattr(estimates, "long", lambda what, *_: "about 9 minutes" * (what == work))
    result = CliRunner().invoke(cli, words.split())
    assert result.exit_code == 0, result.output
    told = f"{estimates.WORKS[work].what} takes about 9 minutes on one processor; Ctrl-C ends it"
    assert result.stderr.count(told) == 1


def test_walks_of_what_is_not_proved_are_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an OFT some failures are left open; where paths are not proved at all, so are these."""
    monkeypatch.chdir(tmp_path)
    routing = {"balance": "compact-valiant", "protect": "node"}
    oft = {"name": "lab", "topology": {"family": "oft", "q": 2}, "routing": routing}
    Fabric.from_spec(oft).compile().save("build")
    monkeypatch.setattr(estimates, "long", lambda what, *of: f"{what}: {of[1]:.0%}")
    result = CliRunner().invoke(cli, ["verify", "build", "--method", "local"])
    assert result.exit_code == 0, result.output
    assert result.stderr.count("walking what the proof leaves open takes verify left: ") <= 1
    monkeypatch.setattr("compilers.proof.walks.delivery.WALKED_UP_TO", 0)
    monkeypatch.setattr("compilers.proof.walks.delivery.provable", lambda _: False)
    result = CliRunner().invoke(cli, ["verify", "build", "--method", "local"])
    told = (
        "walking the minimal paths of every pair, which are not proved, takes verify minimal: 100%"
    )
    assert result.stderr.count(told) == 1


@pytest.mark.parametrize("q", [31, pytest.param(61, marks=pytest.mark.long)])
def test_processes_stay_within_their_estimates(q: int, tmp_path: Path) -> None:
    spec, build = tmp_path / "fabric.yaml", tmp_path / "build"
    spec.write_text(f"name: lab\ntopology: {{family: polarfly, q: {q}}}\n")
    made = Size.of_spec(load_fabric(spec).spec)
    works = {
        "topology": f"export polarfly --q {q} --json",
        "compile": f"compile {spec} -o {build}",
        **({"channels": f"verify {build}", "throughput": f"throughput {build}"} if q > 31 else {}),
    }
    # A process counts the memory of the one that started it as its own: this has too much.
    ours = [[sys.executable, "-m", "polarfab", *words.split()] for words in works.values()]
    code = (
        "import sys; from extensions.bench.scale_timings import run;"
        f"print([run(words, 100)[1:3] for words in {ours}])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for work, (megabytes, why) in zip(works, literal_eval(ran.stdout), strict=True):
        assert not why
        assert megabytes * 1e6 < need(work, made) < megabytes * 3e6, work


def test_a_machine_without_meminfo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "none")
    assert memory.available() > 1 << 20
