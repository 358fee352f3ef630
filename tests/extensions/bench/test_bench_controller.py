"""The benchmark of the controller on a small fabric: that it measures, not how fast."""

import json
import os
import subprocess
import sys

import pytest

from extensions.bench.bench_verb import RIGS
from tests.controller.makers import POLARFAB

FIND = "import tests.bench.echo_probe"
REQUIRE = f"""
import subprocess, sys
from extensions.bench.bench_verb import _require_rigs
_require_rigs("controller")
{FIND}
subprocess.run([sys.executable, "-P", "-c", {FIND!r}], check=True)
"""


def test_rigs_are_found_beside_a_library_with_a_package_of_their_name(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "__init__.py").touch()
    path = os.pathsep.join([str(tmp_path), str(RIGS.parent.parent)])
    command = [sys.executable, "-P", "-c", REQUIRE]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=True, cwd=tmp_path)


@pytest.mark.live
@pytest.mark.long
def test_every_way_is_measured_beside_the_bare_server():
    command = [POLARFAB, "bench", "controller", "--q", "3", "--repeat", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found = {push["what"]: push for push in json.loads(done.stdout)}
    bare = found["bare socket server, same bundles"]
    assert bare["ratio"] == 1
    for name in ("ryu", "os-ken"):
        cold, same = found[f"{name}, from nothing"], found[f"{name}, nothing to change"]
        assert (cold["sent"], same["sent"]) == (bare["sent"], 0)
        assert cold["seconds"] > 0
        assert 0 < cold["echo"] < 5, "sooner than the probe of Open vSwitch gives up"
        assert 10 < cold["megabytes"] < 500
