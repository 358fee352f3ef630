"""The plans of the shipped scenarios are those that are kept; `python -m` this writes them anew."""

import json
from pathlib import Path

import pytest

from mininet_scenarios.run.rehearsal_plan import plan
from mininet_scenarios.scenario.scenario_file import load_scenario, shipped

KEPT = Path(__file__).with_name("plans")


def said(name):
    """The plan as JSON, a case a line."""
    document = plan(load_scenario(name)).as_dict()
    cases = ",\n  ".join(json.dumps(case) for case in document.pop("cases"))
    text = json.dumps(document, indent=1)[:-2]
    return f'{text},\n "cases": [{cases}]\n}}\n'


@pytest.mark.parametrize("name", sorted(shipped()))
def test_the_plan_of_a_shipped_scenario(name):
    text = said(name)
    assert json.loads(text)["scenario"] == name
    assert text == (KEPT / f"{name}.json").read_text()


def test_every_plan_that_is_kept_is_of_a_scenario():
    assert {file.stem for file in KEPT.iterdir()} == set(shipped())


if __name__ == "__main__":
    KEPT.mkdir(exist_ok=True)
    for each in shipped():
        (KEPT / f"{each}.json").write_text(said(each))
