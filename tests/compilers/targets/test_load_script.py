"""load.sh on a kernel: it loads all, leaves out what a dead link has, and stops at what fails."""

import subprocess

import pytest

from mininet_scenarios.ovs.openvswitch import NAMESPACES
from tests.compilers.readers.emitted import fabric, write

LINKS = """set -e
ip link set lo up
for n in 1 2 3 4 5 6; do ip link add eth$n type veth peer name p$n; ip link set p$n up; done
cd {folder}
"""
COUNT = """
echo $(ip -oneline route show table all protocol 80 | wc -l) $(ip nexthop show protocol 80 | wc -l)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("load")
    write("linux", fabric("spread, repaired"), out)
    return out / "0"


def on_kernel(folder, script):
    """What a script prints and complains of in a namespace with six ports."""
    text = LINKS.format(folder=folder) + script
    done = subprocess.run(
        [*NAMESPACES, "bash", "-c", text], capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout.split("\n"), done.stderr


@pytest.mark.live
def test_all_is_loaded_and_what_a_dead_link_has_is_left_out(folder):
    text = (folder / "routes.batch").read_text().splitlines()
    routes = sum(line.startswith("route ") for line in text)
    hops = sum(line.startswith("nexthop ") for line in text)
    script = f"""
sh load.sh; {COUNT}
ip link set p2 down; sh load.sh; {COUNT}
ip route show table all protocol 80 | grep -c ' dev eth2' || true
ip link set p2 up; sh load.sh; {COUNT}"""
    rc, printed, said = on_kernel(folder, script)
    assert (rc, said) == (0, "")
    assert printed[0] == f"{routes} {hops}" == printed[3]
    assert printed[1].split()[1] == str(hops - 1)
    assert printed[2] == "0"


@pytest.mark.live
def test_it_stops_at_the_first_command_that_fails_and_says_what_holds(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_text(file.read_text())
    lines = (tmp_path / "routes.batch").read_text().splitlines(keepends=True)
    hops = [line for line in lines if line.startswith("nexthop ")]
    others = [line for line in lines if not line.startswith("nexthop ")]
    (tmp_path / "routes.batch").write_text("".join(others + hops))
    rc, printed, said = on_kernel(tmp_path, f"sh load.sh || echo stopped\n{COUNT}")
    assert (rc, printed[0]) == (0, "stopped")
    assert "routes.batch: route replace" in said
    assert "What was done before it holds, nothing behind it" in said
    assert printed[1].split()[1] == "0"


@pytest.mark.live
def test_nothing_changes_without_an_interface_or_a_file(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_text(file.read_text())
    script = f"""
sh load.sh; {COUNT}
ip link delete eth6
sh load.sh || true; {COUNT}
rm rules.batch; sh load.sh || true; {COUNT}"""
    rc, printed, said = on_kernel(tmp_path, script)
    assert rc == 0
    assert printed[0] == printed[1] == printed[2]
    assert "no interface eth6; nothing was changed" in said
    assert "no file rules.batch; nothing was changed" in said
