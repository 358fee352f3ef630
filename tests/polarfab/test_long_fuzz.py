"""Ten minutes of each fuzzer: no bug, no hang, no more than 2 GiB, nothing accepted that is not so.

Seeds go on from one case to the next, so a case of a message can be run again by its seed.
`FUZZ_SECONDS` says another time.
"""

from __future__ import annotations

import io
import json
import os
import random
import resource
import shutil
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import yaml

from compilers.planes import compile_planes
from compilers.proof.walks.delivery import verify
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build_codec import require_declared
from compilers.topology.families import build_topology
from compilers.topology.files.graph_file import graph_file
from compilers.topology.files.graph_formats import write
from inventory.neighbours.neighbour_file import NEIGHBOUR_FORMATS, read_facts
from inventory.netbox.netbox_file import read_netbox
from inventory.problems import InputError
from inventory.route_tables.route_table_file import read_routes
from tests.compilers.audit.device_tables import PRINTERS
from tests.compilers.spec.test_spec_fuzz import ROOT, SECONDS, mutated_bytes, mutated_tree
from tests.compilers.topology.test_graph_file_fuzz import SUFFIXES
from tests.inventory.test_aswired_read import TABLES
from tests.inventory.test_netbox import OURS, export
from tests.polarfab.conftest import Run
from tests.polarfab.test_contract import ELSEWHERE, JUNK, calls, tried
from tests.polarfab.test_fuzzed_builds import SPEC, VERBS, harm
from tests.polarfab.test_fuzzed_options import cases

TIME = float(os.environ.get("FUZZ_SECONDS", "600"))
HANG, MOST = 20, 2 << 30
"""Seconds that a case may take, bytes that the process may have."""
Case = Callable[[random.Random], str]
"""A case by chance: "accepted", "refused", or what is wrong."""
GOOD = ("accepted", "refused")


def judged(work: Callable[[], object], folder: Path) -> str:
    """What became of reading: problems name a file in the folder, in few printable letters."""
    try:
        work()
    except InputError as error:
        wrong = [
            str(problem)
            for problem in error.problems
            if not problem.file.startswith((str(folder), "<stdin>"))
            or not str(problem).isprintable()
            or len(str(problem)) > 600 + len(problem.file)
        ]
        return f"message: {wrong}" if wrong or not error.problems else "refused"
    return "accepted"


def documents(folder: Path, _run: Run) -> Case:
    """Specs and inventories, mutated as trees and as bytes; what compiles is proved."""
    files, trees = {}, {}
    for example in SECONDS:
        place = folder / Path(example).name
        place.mkdir()
        for name in ("fabric.yaml", "inventory.yaml"):
            shutil.copy(ROOT / example / name, place)
            files[place / name] = (place / name).read_bytes()
            trees[place / name] = yaml.safe_load(files[place / name])

    def work(spec: Path, chance: random.Random) -> None:
        builds = compile_planes(load_fabric(spec))
        for build in builds:
            require_declared(build)
            if chance.random() < 0.1:
                assert verify(build).passed, "the proof fails"

    def case(chance: random.Random) -> str:
        file = chance.choice(list(files))
        tree = chance.random() < 0.7
        text = mutated_tree(trees[file], chance) if tree else mutated_bytes(files[file], chance)
        file.write_bytes(text)
        try:
            return judged(lambda: work(file.with_name("fabric.yaml"), chance), folder)
        finally:
            file.write_bytes(files[file])

    return case


def graphs(folder: Path, _run: Run) -> Case:
    """Files of graphs in every format."""
    texts = {}
    for form in SUFFIXES:
        stream = io.StringIO()
        write(build_topology("polarfly", {"q": 2}), form, stream)
        texts[form] = stream.getvalue().encode()

    def case(chance: random.Random) -> str:
        form = chance.choice(list(texts))
        tree = SUFFIXES[form] == ".json" and chance.random() < 0.6
        mutate = lambda t: mutated_tree(json.loads(t), chance) if tree else mutated_bytes(t, chance)  # noqa: E731
        file = folder / f"graph{SUFFIXES[form]}"
        file.write_bytes(mutate(texts[form]))
        return judged(lambda: graph_file(file), folder)

    return case


def tables(folder: Path, _run: Run) -> Case:
    """Tables of devices: neighbours, routes, and exports of NetBox."""
    (netbox := folder / "netbox").mkdir()
    export(ROOT / "examples/q7/fabric.yaml", netbox)
    (netbox / "type.yaml").write_bytes(OURS.read_bytes())
    originals = {}
    for path in sorted(netbox.rglob("*.*")):
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:12] if path.suffix == ".csv" else lines))
        originals[path] = path.read_bytes()
    routes = {("main", "10.0.1.0/24"): [[("10.1.0.1", "eth1", 1), ("10.1.0.3", "eth2", 1)]]}
    (one := folder / "one").mkdir()

    def case(chance: random.Random) -> str:
        kind = chance.choice(["neighbours", "routes", "netbox"])
        if kind == "netbox":
            file = chance.choice(list(originals))
            file.write_bytes(mutated_bytes(originals[file], chance))
            try:
                return judged(lambda: read_netbox([netbox]), folder)
            finally:
                file.write_bytes(originals[file])
        if kind == "neighbours":
            text = TABLES[chance.choice(list(TABLES))][0]
            form = chance.choice([None, None, *NEIGHBOUR_FORMATS])
            work: Callable[[], object] = lambda: read_facts([one], form)  # noqa: E731
        else:
            outputs = PRINTERS[chance.choice(list(PRINTERS))](routes)
            text = "\n".join(map(json.dumps, outputs))
            work = lambda: read_routes([one / "n1.x"])  # noqa: E731
        tree = text[0] in "[{" and chance.random() < 0.6
        try:
            parsed = json.loads(text) if tree else None
        except ValueError:
            parsed = None
        if parsed:
            mutated = json.dumps(yaml.safe_load(mutated_tree(parsed, chance)), default=str).encode()
        else:
            mutated = mutated_bytes(text.encode(), chance)
        (one / "n1.x").write_bytes(mutated)
        return judged(work, folder)

    return case


def options(_folder: Path, run: Run) -> Case:
    """Pairs of options with values good and bad."""
    Path("f.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 2}\n")
    assert run("compile", "f.yaml", "-o", "kept")[0] == 0
    every = cases()
    from tests.polarfab.test_fuzzed_options import VERBS as WORDS

    def case(chance: random.Random) -> str:
        for name in ("b", "out"):
            shutil.rmtree(name, ignore_errors=True)
        shutil.copytree("kept", "b")
        Path("out").mkdir()
        Path("f.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 2}\n")
        name, *pair = chance.choice(every)
        words = [name, *WORDS[name]]
        for option, *values in pair:
            words += [option, chance.choice(values)] if values else [option]
        return said(words, *run(*words))

    return case


def said(words: object, code: int, _out: str, err: str) -> str:
    if code not in (0, 1, 2) or "Traceback" in err:
        return f"{words}: exit code {code}: {err[-500:]}"
    return "refused" if code == 2 else "accepted"


def folders(_folder: Path, run: Run) -> Case:
    """Damaged build folders, signed again or not."""
    Path("f.yaml").write_text(SPEC)
    assert run("compile", "f.yaml", "-o", "sound")[0] == 0
    places = {"BUILD": "build", "OUT": "out", "SOUND": "sound"}

    def case(chance: random.Random) -> str:
        for name in ("build", "out"):
            shutil.rmtree(name, ignore_errors=True)
        shutil.copytree("sound", "build")
        Path("out").mkdir()
        what = harm(Path("build"), chance)
        words = VERBS[chance.choice(list(VERBS))]
        for key, place in places.items():
            words = [word.replace(key, place) for word in words]
        return said((what, words), *run(*words))

    return case


def library(folder: Path, _run: Run) -> Case:
    """Public functions with one or two arguments of junk."""
    import inspect

    every = [call for call in calls(folder) if call.name not in ELSEWHERE]

    def case(chance: random.Random) -> str:
        call = chance.choice(every)
        names = [
            name
            for name, p in inspect.signature(call.function).parameters.items()
            if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        given: dict[str, Any] = dict(call.given)
        for name in chance.sample(names, min(len(names), chance.choice([1, 1, 2]))):
            given[name] = chance.choice(JUNK)
        return tried(call, given) or "accepted"

    return case


FUZZERS = [documents, graphs, tables, options, folders, library]


def late(*_: object) -> None:
    raise TimeoutError(f"more than {HANG} s")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory, nothing on standard input, and a limit of time."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    before = signal.signal(signal.SIGALRM, late)
    yield tmp_path / "here"
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.long
@pytest.mark.parametrize("fuzzer", FUZZERS, ids=lambda fuzzer: fuzzer.__name__)
def test_ten_minutes(
    fuzzer: Callable[[Path, Run], Case],
    here: Path,
    polarfab: Run,
    record_property: Callable[[str, object], None],
) -> None:
    case, wrong, count = fuzzer(here, polarfab), Counter[str](), Counter[str]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    seed, end = 0, monotonic() + TIME
    while monotonic() < end:
        seed += 1
        signal.setitimer(signal.ITIMER_REAL, HANG)
        try:
            found = case(random.Random(seed))  # noqa: S311
        except BaseException as error:
            with suppress(Exception):
                signal.setitimer(signal.ITIMER_REAL, 0)
            if isinstance(error, KeyboardInterrupt):
                raise
            place = traceback.extract_tb(error.__traceback__)[-1]
            found = f"{type(error).__name__} {error!s:.200} at {place.filename}:{place.lineno}"
        signal.setitimer(signal.ITIMER_REAL, 0)
        count[found if found in GOOD else "wrong"] += 1
        if found not in GOOD and len(wrong) < 50:
            wrong[f"seed {seed}: {found}"] += 1
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        if most > max(MOST, before):
            wrong[f"seed {seed}: {most >> 20} MiB"] += 1
            before = most
    record_property("cases", dict(count))
    print(fuzzer.__name__, seed, dict(count), file=sys.__stdout__)
    assert not wrong, "\n".join(wrong)
