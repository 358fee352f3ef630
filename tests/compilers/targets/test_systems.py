"""A system is one folder: outside of it, and of its templates and tests, it is named nowhere."""

import re
from pathlib import Path

from compilers.spec.target_names import BUILT_IN_SYSTEMS
from compilers.targets.target_lookup import installed_systems

ROOT = Path(__file__).parents[3]
ROOMS = "compilers", "controller", "polarfab", "mininet_scenarios", "inventory"
NAMED = {
    "compilers/spec/node_checks.py": "ports of SONiC are numbered by lanes",
    "inventory/sonic_platform.py": "the key `platform` is a file of SONiC",
}
"""Where a system is named nevertheless, and why."""
IN_ENGLISH = {"bird", "frr", "linux", "ovs"}
"""Systems that rehearsals run, and names of tools that are words of texts."""


def test_a_system_is_named_in_its_folder():
    word = re.compile(rf"\b({'|'.join(sorted({*BUILT_IN_SYSTEMS} - IN_ENGLISH))})\b")
    for room in ROOMS:
        for file in (ROOT / room).rglob("*"):
            place = str(file.relative_to(ROOT))
            if file.suffix in (".py", ".yaml", ".md") and not place.startswith((*NAMED,)):
                named = {*word.findall(file.read_text())}
                assert all(place.startswith(f"compilers/targets/{name}/") for name in named), place


def test_templates_of_tools_name_no_system():
    systems = "|".join(BUILT_IN_SYSTEMS)
    for tool in ("ansible", "containerlab"):
        for file in (ROOT / "templates" / tool).glob("*.j2"):
            for line in file.read_text().splitlines():
                assert not re.search(rf"system (==|in) .*\b({systems})\b", line), line


def test_one_system_is_the_usual_one():
    assert [system.name for system in installed_systems() if system.is_default] == ["frr"]
