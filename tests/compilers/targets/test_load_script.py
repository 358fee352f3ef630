"""load.sh on a kernel: it loads all, leaves out what a dead link has, and stops at what fails."""

import re
import shutil
import subprocess

import numpy as np
import pytest

from mininet_scenarios.ovs.openvswitch import NAMESPACES
from tests.compilers.readers.emitted import fabric, write
from tests.compilers.routed import routed

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


@pytest.mark.parametrize("target", ["linux", "frr", "bird"])
def test_the_port_of_an_only_host_has_to_be_there(target, tmp_path):
    """Without it load.sh stopped half way, at an address for that port."""
    build = routed(q=2)
    assert (np.count_nonzero(build.wiring.host_port, axis=1) == 1).all()
    write(target, build, tmp_path)
    port = build.wiring.port_name(0, int(build.wiring.host_port[0, 0]))
    (loop,) = re.findall(r"^for port in (.*); do$", (tmp_path / "0/load.sh").read_text(), re.M)
    assert port in loop.split()


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


@pytest.mark.live
def test_a_link_that_comes_up_before_anybody_listens_gets_its_routes(folder, tmp_path):
    """`ip monitor` is slow to start, as on a machine that boots; the next event came 14 s later."""
    slow = tmp_path / "ip"
    slow.write_text(
        f"""#!/bin/sh
echo "$*" >> {tmp_path}/log
case $* in *monitor*) until [ -e {tmp_path}/go ]; do sleep .05; done ;; esac
exec {shutil.which("ip")} "$@"
"""
    )
    slow.chmod(0o755)
    script = f"""
sh load.sh; {COUNT}
full=$({COUNT})
ip link set p2 down
PATH={tmp_path}:$PATH sh load.sh watch &
until grep -qs monitor {tmp_path}/log; do sleep .05; done
n=; until [ "$n" = "$(wc -l < {tmp_path}/log)" ]; do n=$(wc -l < {tmp_path}/log); sleep .5; done
{COUNT}
ip link set p2 up
until ip -oneline link show eth2 | grep -q 'LOWER_UP.* state UP'; do sleep .05; done
while ip -6 address show dev eth2 | grep -q tentative; do sleep .05; done
touch {tmp_path}/go
for _ in $(seq 100); do
  [ "$({COUNT})" = "$full" ] && break
  sleep .1
done
{COUNT}
kill -- %1 $(pgrep -P $! || true); exit 0"""
    rc, printed, said = on_kernel(folder, script)
    assert (rc, said) == (0, "")
    assert printed[1] != printed[0] == printed[2]


def broken(folder, out, file):
    """A copy of a folder with a line in the middle of a file that nothing can read."""
    shutil.copytree(folder, out)
    lines = (out / file).read_text().splitlines(keepends=True)
    lines.insert(len(lines) // 2, "bogus thing\n")
    (out / file).write_text("".join(lines))
    return out


FILES = {
    "linux": ("sysctl.conf", "links.batch", "routes.batch"),
    "frr": ("rules.batch",),
}


@pytest.mark.live
@pytest.mark.parametrize(("name", "file"), [(n, f) for n, files in FILES.items() for f in files])
def test_every_script_stops_at_a_line_that_fails(name, file, tmp_path):
    """A line of sysctl.conf was passed over; `watch` waited on after routes that were refused."""
    write(name, fabric("spread, repaired"), tmp_path / "out")
    place = broken(tmp_path / "out" / "0", tmp_path / "bad", file)
    for word in ("", "watch")[: 1 + (name == "linux")]:
        rc, printed, said = on_kernel(place, f"timeout 60 sh load.sh {word} || echo $?")
        assert (rc, printed[0]) == (0, "1"), (word, said)
        assert f"polarfab: {file}: " in said
        assert "What was done before it holds, nothing behind it" in said


@pytest.mark.live
@pytest.mark.parametrize("file", ["host.batch"])
def test_a_host_stops_at_a_line_that_fails(file, tmp_path):
    write("srv6", fabric("spread"), tmp_path / "out")
    place = broken(tmp_path / "out" / "hosts" / "h8", tmp_path / "bad", file)
    device = "ip link add eth0 type veth peer name p0; ip link set eth0 up; ip link set p0 up"
    script = device + "; ip address add fd00::2/64 dev eth0 nodad; sh load.sh || echo $?"
    rc, printed, said = on_kernel(place, script)
    assert (rc, printed[0]) == (0, "1"), said
    assert f"polarfab: {file}" in said
    assert "run load.sh again" in said
