"""What the command line says of wrong words, as golden text: one line for each kind of mistake."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.polarfab.conftest import Run

COMMANDS = """\
verfy
--completion tcsh
--quiet verify build
status x
render build
export polarfly --qq 3
export polarfly --q x
export polarfly --q 6
export polarfly --format grapml
export polarfly x
export polarfli --q 7
export fabric.yaml --q 3
check wirin x
check spec built
check spec inventory.yaml
compile fabric.yaml b
compile .
compile empty.yaml
compile fabric.yaml -o
compile fabric.yaml -o ''
compile fabric.yaml --quiet --verbose
compile two.yaml
verify nowhere
verify fabric.yaml
verify build --failures links
verify build --emitted build
explain build 0 1 2
explain build 0 h33
explain build 0 1 --fail nope
cables build --rack fan9
cables build --json --format csv
cables build --format csv -o nowhere/x
cables build --format csv -o .
render build --target ciscoo -o out
render build --target frr --set b=1 -o out
render build --target frr --set routing=bgp -o out
diff build --from build --set version=8.4
plan build --from build --to http://127.0.0.1:1
plan build --to http://127.0.0.1:1
expand fabric.yaml
draw build --pattern tornado -o chart.svg
draw build --show load --pattern tornadoo -o chart.svg
draw polarfly --q 3 --show load -o chart.svg
draw build --mark nope -o chart.svg
draw build -o chart.png
throughput build --pattern perm2hob
simulate build --scheme valley --vcs 1
simulate build --routing ugal-pf-table --flows 2
draw planes.yaml -o x.svg
design
design --radix 9..8
design --hosts 300 --budget 5
design --hosts 1 --budget nan
design --radix 8 --family slimfy
analyse polarfli
analyse slimfly q=6
analyse polarfly --q 3 --what load,speed
init lab
init polarfly --q 3
emulate --engine model
emulate .
emulate first-light-q3 --report x.pdf
push build --target ovs
push build --target opensm
push build --target linux --overrule lines
push build --target frr --run 'ssh {host}'
controller build --tls-key fabric.yaml
status --token-file nope
drain build 5
drain 4 5
apply
apply build --confirm
folder nowhere --clean
"""


@pytest.fixture
def _lab(polarfab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a fabric and its build, and files of other kinds."""
    monkeypatch.chdir(tmp_path)
    Path("fabric.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 3}\n")
    Path("planes.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 3}\nplanes: 2\n")
    Path("two.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 6}\nhosts_per_nod: 1\n")
    Path("inventory.yaml").write_text("generate: {type: switch-32}\n")
    Path("empty.yaml").touch()
    Path("built").mkdir()
    Path("built/manifest.json").write_text("{}")
    assert polarfab("compile", "fabric.yaml", "-o", "build")[0] == 0


@pytest.mark.usefixtures("_lab")
def test_wrong_words(polarfab: Run, golden: Callable[[str, str], None]) -> None:
    before = sorted(Path().rglob("*"))
    said = []
    for line in COMMANDS.splitlines():
        code, out, err = polarfab(*shlex.split(line))
        assert code == 2, line
        assert not out or "--json" in line, line
        assert all(text.startswith("error: ") for text in err.splitlines()), err
        said.append(f"$ polarfab {line}\n{err}")
    assert sorted(Path().rglob("*")) == before, "nothing is written"
    golden("\n".join(said), "messages.txt")
