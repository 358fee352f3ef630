"""From a scenario's file to its result, on the model: the files of the room that have a part."""

import inspect
import sys
from pathlib import Path

from mininet_scenarios import __path__ as room
from mininet_scenarios.run.emulation import Emulation, chosen
from mininet_scenarios.scenario.scenario_file import load_scenario

MOST = 12
SCENARIO = """\
name: lab
fabric:
  name: lab
  topology: {family: polarfly, q: 2}
  hosts_per_node: 1
traffic:
  link_rate: 10
  probe: {interval: 0.1}
  flows: {pattern: tornado, seconds: 1}
timeline:
  - link_down: 0-1
  - link_up: 0-1
  - policy: {protect: none}
expect: {paths: [[0, 1]]}
"""


def test_a_scenario_passes_a_dozen_files_at_most(tmp_path):
    file = tmp_path / "lab.yaml"
    file.write_text(SCENARIO)
    passed = set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # a function's
            passed.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        found = Emulation(chosen(load_scenario(str(file)), "model", None)).run()
    finally:
        sys.setprofile(None)
    assert found.passed, found.as_dict()["checks"]
    (folder,) = room
    ours = sorted(str(Path(name).relative_to(folder)) for name in passed if name.startswith(folder))
    assert {"run/emulation.py", "run/rehearsal_plan.py", "run/rehearsal.py", "run/timeline.py"} <= {
        *ours
    }
    assert len(ours) <= MOST, ours
