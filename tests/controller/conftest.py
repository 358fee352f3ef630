"""Real Open vSwitch, the 13 switches of ER_3 without hosts, and controllers as users run them."""

import gc
import os
import shutil
from threading import Event, current_thread, main_thread

import pytest
import trustme

from controller.switches.events import Kind
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from tests.controller import hung_disk
from tests.controller.makers import (
    BRIDGES,
    SWITCHES,
    Running,
    compile_into,
    own_network,
    polarfab,
)

MANY_DESCRIPTORS = 200
"""Open descriptors from which on garbage is looked for; `select` takes none from 1,024 on."""


@pytest.fixture(scope="module")
def switches(tmp_path_factory):
    """13 bridges of the fabric and one that is not of it."""
    with own_network(), PrivateOvs(tmp_path_factory.mktemp("ovs")) as ovs:
        commands = []
        for name, datapath in BRIDGES.items():
            commands += ["--", "add-br", name, "--", "set", "bridge", name]
            commands += ["datapath_type=netdev", "fail_mode=secure", "protocols=OpenFlow13"]
            commands += [f"other-config:datapath-id={datapath:016x}"]
        ovs.vsctl(*commands[1:])
        yield ovs


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """Two builds that differ in their identity."""
    folders = []
    for name in ("one", "two"):
        folder = tmp_path_factory.mktemp(name)
        spec = folder / "fabric.yaml"
        spec.write_text(f"name: {name}\ntopology: {{family: polarfly, q: 3}}\n")
        folders.append(folder / "build")
        compile_into(folders[-1], spec)
    return folders


@pytest.fixture
def run(tmp_path, switches):
    """Run controllers; whatever happens they end with the test."""
    started = []

    def start(command, **environment):
        started.append(Running(switches, tmp_path, command, **environment))
        return started[-1]

    yield start
    for controller in started:
        controller.process.kill()
        controller.process.wait()


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """Set while the disk with the test's folder answers; else threads wait, the loop may not."""
    answers = Event()
    answers.set()

    def hang():
        if not answers.is_set():
            assert current_thread() is not main_thread(), "the loop waits for the disk"
            assert answers.wait(60.0)

    for where, name, function in hung_disk.changes(tmp_path, hang):
        monkeypatch.setattr(where, name, function)
    yield answers
    answers.set()


@pytest.fixture(scope="module", params=["ryu", "os-ken"])
def framework(request):
    return request.param


@pytest.fixture(scope="module")
def controller(switches, builds, framework, tmp_path_factory):
    """One controller a framework for the tests that only use it; it must end cleanly."""
    folder = tmp_path_factory.mktemp(framework)
    build = shutil.copytree(builds[0], folder / "build")  # one controller a folder
    running = Running(switches, folder, polarfab(build, framework))
    try:
        yield running
        running.stop()
    finally:
        running.process.kill()
        running.process.wait()


@pytest.fixture
def certificates(tmp_path):
    """PEM files: ours, of all switches but 12, the authority of both, and another authority's."""
    authority, other = trustme.CA(), trustme.CA()
    files = {"authority": tmp_path / "authority.pem", "signer": authority}
    authority.cert_pem.write_to_path(files["authority"])
    for who, of in (("ours", authority), ("switch", authority), ("stranger", other)):
        nodes = [f"{v}.lab.example" for v in range(SWITCHES - 1)] if who == "switch" else []
        issued = of.issue_cert(f"{who}.example", "127.0.0.1", *nodes)
        files[f"{who}-key"], files[who] = tmp_path / f"{who}-key.pem", tmp_path / f"{who}.pem"
        issued.private_key_pem.write_to_path(files[f"{who}-key"])
        issued.cert_chain_pems[0].write_to_path(files[who])
    return files


@pytest.fixture(autouse=True, scope="module")
def ended_controllers():
    """Those of a module are garbage in cycles; a build that one has mapped keeps descriptors."""
    yield
    if len(os.listdir("/proc/self/fd")) > MANY_DESCRIPTORS:  # noqa: PTH208 - all else is slower
        gc.collect()


JSON = {"text": str, "integer": int, "number": int | float}


@pytest.fixture(autouse=True, scope="session")
def typed_events():
    """Every event that tests have our code report is of the types that its kind says.

    No type of Python says so, and what NumPy counts is no JSON.
    """

    def made(kind, *values, _call=Kind.__call__, **named):
        event = _call(kind, *values, **named)
        for name, form in kind.types.items():
            value = event.fields[name]
            if form.startswith("list of "):
                assert isinstance(value, list | tuple), (kind.name, name, value)
            else:
                assert type(value) is not bool, (kind.name, name, value)
                word, *null = form.split(" or ")
                right = isinstance(value, JSON[word]) or (null and value is None)
                assert right, (kind.name, name, value)
        return event

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kind, "__call__", made)
        yield
