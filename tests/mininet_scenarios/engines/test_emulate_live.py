"""`polarfab emulate` as users run it: real switches, hosts and controllers, and nothing left."""

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from compilers.tables.folders.build_folder import save
from mininet_scenarios.machine import preflight
from mininet_scenarios.machine.netns import module_process
from tests.polarfab.forked import command_line
from tests.waiting import until

pytestmark = pytest.mark.live
POLARFAB = Path(sys.executable).with_name("polarfab")
AS_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
SEVEN_SWITCHES = "name: seven\nfabric: {name: seven, topology: {family: polarfly, q: 2}}\n"
POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


def emulate(*args, prefix=(), timeout=300, copies=False):
    if not prefix:
        return command_line().run("emulate", *args, timeout=timeout, copies=copies)
    return subprocess.run(
        [*prefix, POLARFAB, "emulate", *args], capture_output=True, text=True, timeout=timeout
    )


def passed(*args, **more):
    done = emulate(*args, "--json", **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def check(report, q, framework):
    n = q * q + q + 1
    assert report["passed"]
    assert (report["engine"], report["framework"]) == ("mininet", framework)
    assert report["pairs"] == report["delivered"] == n * (n - 1)
    hops = {"1": q * (q + 1) ** 2, "2": n * (n - 1) - q * (q + 1) ** 2}
    assert report["hops"] == {"predicted": hops, "seen": hops}
    assert "expected 2 hops, seen 3 hops" in report["caught"]
    names = [check["name"] for check in report["checks"]]
    compared = ("arrived", "hops as predicted", "link counters as predicted")
    small = ("rules exercised", "frames arrive as they were sent") if q == 3 else ()
    assert names == [
        "a wrong table is caught",
        *(f"every pair: {what}" for what in ("delivered", "at most 2 hops", "shortest paths")),
        *(f"every pair: {what}" for what in compared),
        *small,
        *(f"sample: {what}" for what in compared),
    ]
    links = next(c for c in report["checks"] if c["name"].startswith("every pair: link"))
    assert links["seen"] == links["required"] == q * (q + 1) ** 2


def test_first_light():
    """With os-ken; other live emulations choose Ryu."""
    check(passed("first-light-q3", "--engine", "mininet", "--framework", "os-ken"), 3, "os-ken")


@pytest.mark.long  # test_engine_failures_live has alternates by weight
def test_alternates_take_some_of_the_paths_that_the_tables_allow():
    report = passed("alternates-q3", "--engine", "mininet")
    assert report["delivered"] == 156
    assert report["caught"]
    assert report["hops"]["predicted"] == {}
    seen = report["hops"]["seen"]
    assert seen["1"] == 48
    assert seen["2"] + seen["3"] == 108
    assert seen["3"] > 0
    rules = report["rules"]
    assert rules["exercised"] == rules["all"] == rules["due"] == 2010


@pytest.mark.long
@pytest.mark.parametrize("framework", ["ryu", "os-ken"])
@pytest.mark.parametrize(
    ("name", "q"), [("even-q4", 4), ("first-light-q5", 5), ("first-light-q7", 7)]
)
def test_larger_fabrics(name, q, framework):
    check(passed(name, "--engine", "mininet", "--framework", framework), q, framework)


def test_an_ordinary_user_and_both_versions_of_the_protocol(tmp_path):
    """Root in a user namespace of one's own is enough."""
    keep = tmp_path / "keep"
    report = passed("dual-stack-q2", "--engine", "mininet", "--keep", str(keep), prefix=AS_USER)
    seen = {check["name"]: check["seen"] for check in report["checks"]}
    assert seen["every pair over IPv6: arrived"] == seen["every pair: arrived"] == 42
    assert seen["every pair over IPv6: link counters as predicted"] == 18
    logs = {path.name for path in keep.iterdir()}
    assert {"controller.log", "ovs-vswitchd.log", "build"} <= logs


def test_a_wrong_table_fails_and_names_the_pair(tmp_path, compiled):
    folder = tmp_path / "build"
    build = compiled(2)
    egress = np.array(build.tables.routes.egress)
    far = next(d for d in range(7) if d != 2 and d not in build.wiring.far[2])
    egress[2, far] = (egress[2, far] + 1) % 2
    routes = replace(build.tables.routes, egress=egress)
    save(replace(build, tables=replace(build.tables, routes=routes)), folder)

    refused = emulate(str(folder))
    assert refused.returncode == 2
    assert "required a build that has passed polarfab verify" in refused.stderr

    done = emulate(str(folder), "--unverified", "--engine", "mininet", "--json", copies=True)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    failed = {c["name"]: c["mismatches"] for c in report["checks"] if not c["passed"]}
    assert {"where": f"h2 → h{far}", "expected": "2 hops", "seen": "3 hops"} in failed[
        "every pair: shortest paths"
    ]
    assert not any("predicted" in name for name in failed)


def test_without_privilege_the_walker_answers_and_says_so():
    done = emulate("first-light-q3", prefix=POWERLESS)
    assert done.returncode == 0, done.stderr
    assert "Mininet cannot run here, so no packet is sent" in done.stdout
    assert "a wrong table was caught" in done.stdout
    refused = emulate("first-light-q3", "--engine", "mininet", prefix=POWERLESS)
    assert refused.returncode == 2
    assert "namespaces of one's own" in refused.stderr


def test_the_controller_that_cannot_start_is_told(tmp_path):
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SEVEN_SWITCHES)
    keep = tmp_path / "keep"
    keep.mkdir()
    (keep / "controller.json").mkdir()
    done = emulate(str(scenario), "--engine", "mininet", "--keep", str(keep))
    assert done.returncode == 1
    assert "the emulation failed: the controller has ended" in done.stderr
    assert str(keep) in done.stderr
    assert not of_run(str(keep))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_it_is_stopped_while_it_pings(tmp_path, how):
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SEVEN_SWITCHES)
    work = tmp_path / "work"
    work.mkdir()
    before = interfaces()
    own = {"TMPDIR": str(work), "XDG_STATE_HOME": str(tmp_path / "state")}
    run = subprocess.Popen(
        [POLARFAB, "emulate", str(scenario), "--engine", "mininet"],
        env={**os.environ, **own},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in run.stdout:
        if "a wrong table was caught" in line:
            break
    ours = namespaces([Path("/proc/self")])
    # A network and a process namespace; a ping that is just being started may add its host's.
    until(lambda: len(namespaces(of_run(str(work))) - ours) == 2)
    with ExitStack() as held:  # an open namespace keeps its number, which else another one gets
        for process in of_run(str(work)):
            for kind in ("net", "pid"):
                held.enter_context((process / "ns" / kind).open())
        own = namespaces(of_run(str(work))) - ours
        run.send_signal(how)
        _, told = run.communicate(timeout=60)
        assert run.returncode == (130 if how == signal.SIGINT else -how)
        assert told.strip() == ("interrupted" if how == signal.SIGINT else "")
        until(lambda: not of_run(str(work)), "its processes have ended")
        until(lambda: not own & namespaces(), "its namespaces are empty")
        until(lambda: not any(work.iterdir()), "its folder is gone")
    assert interfaces() == before


def test_its_folder_goes_although_much_is_in_it_and_is_written_and_told(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    for number in range(3_000):
        (work / f"file-{number}").touch()
    writers = "tests.mininet_scenarios.engines.live_writers"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    process, end = module_process(writers, preflight.namespaces(), env=env)
    try:
        with end:
            end.send(SimpleNamespace(work=work, temporary=True))
            end.send(("start", ()))
            assert end.recv() == ("result", None)
            end.send(("tell", ()))
            assert end.recv() == ("progress", ("more",))
        until(lambda: not work.exists(), limit=20)
    finally:
        process.kill()
        process.wait()


def of_run(folder):
    """The processes that have the folder in their command line."""
    return [process for process in everyone() if folder in words_of(process)]


def everyone():
    return list(Path("/proc").glob("[0-9]*"))


def words_of(process):
    with suppress(OSError):
        return (process / "cmdline").read_text(errors="replace")
    return ""


def namespaces(processes=None):
    """The network and process namespaces that these processes, or any, are in."""
    found = set()
    for process in everyone() if processes is None else processes:
        for kind in ("net", "pid"):
            with suppress(OSError):
                found.add(str((process / "ns" / kind).readlink()))
    return found


def interfaces():
    return sorted(path.name for path in Path("/sys/class/net").iterdir())
