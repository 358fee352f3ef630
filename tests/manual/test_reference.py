"""The pages and figures that the site makes from the code: nothing is missing there."""

from __future__ import annotations

import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compilers.spec.value_checks import BLOCK_CHECKS, FABRIC_CHECKS, INVENTORY_CHECKS
from polarfab.verb_list import verb_names

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """The pages, made in a process of their own, as the site makes them.

    click keeps the option --help as the first test that runs a verb has it.
    """
    code = "import json; from manual.reference import pages; print(json.dumps(dict(pages())))"
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    return dict(json.loads(made.stdout))


def test_the_site_has_a_place_for_every_page(made: dict[str, str]) -> None:
    nav = (ROOT / "mkdocs.yml").read_text()
    assert [place for place in made if f"- {place}\n" not in nav] == []


def test_pages_are_those_of_the_code(made: dict[str, str], request: pytest.FixtureRequest) -> None:
    """They are kept, so that links of a clone lead somewhere; --update-golden writes them."""
    for place, text in made.items():
        file = ROOT / "docs" / place
        if request.config.getoption("--update-golden"):
            file.write_text(text)
        assert file.read_text() == text, f"{place}: pytest --update-golden tests/manual writes it"


def test_every_verb_has_its_help(made: dict[str, str]) -> None:
    assert re.findall(r"^## (\S+)$", made["reference/verbs.md"], re.M) == verb_names()
    assert made["reference/verbs.md"].count("Usage: ") >= len(verb_names())


@pytest.mark.parametrize("file", ["grafana-dashboard.json", "alerts.yml"])
def test_dashboard_and_alerts_use_metrics_of_the_page(made: dict[str, str], file: str) -> None:
    shown = set(re.findall(r"^\| `(polarfab_\w+)`", made["reference/metrics.md"], re.M))
    text = (ROOT / "docs/operate" / file).read_text()
    used = {name.removesuffix("_bucket") for name in re.findall(r"polarfab_\w+", text)}
    assert used <= shown


def test_the_class_has_its_public_members_only(made: dict[str, str]) -> None:
    """The default of a field had the docstring of `tuple`."""
    page = made["reference/api.md"]
    assert "### Fabric.compile\n" in page
    assert "### Fabric.compiled\n" not in page
    assert "Built-in" not in page
    assert "- `_" not in page


def test_examples_of_the_api_run_as_they_stand(made: dict[str, str]) -> None:
    """One used names that it did not import, and was not indented, so Markdown quoted it."""
    _, *sections = re.split(r"^##+ ", made["reference/api.md"], flags=re.M)
    examples = [text for text in sections if ">>> " in text]
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    for text in examples:
        assert "\n    >>> " in text
        runner.run(parser.get_doctest(text, {}, text.split("\n")[0], None, None))
    assert len(examples) > 30
    assert not runner.failures


def test_keys_have_the_checks_between_values(made: dict[str, str]) -> None:
    _, _, section = made["reference/keys.md"].partition("## Checks between values\n")
    lines = re.findall(r"^- (.+)$", section, re.M)
    assert lines == [check.line for check in (*FABRIC_CHECKS, *INVENTORY_CHECKS, *BLOCK_CHECKS)]


def test_types_of_variables_are_listed_down_to_the_last(made: dict[str, str]) -> None:
    page = made["reference/variables.md"]
    listed = re.findall(r"^### (\w+)$", page, re.M)
    assert {"NodeFacts", "NodeHost", "FabricFacts", "P2pLink", "BgpPeer", "MarkedPort"} <= {*listed}
    assert {"CarrierNexthop", "P2pFamily", "VrfRoutes"} <= {*listed}, "named tuples"
    assert len(listed) == len({*listed})
    words = ("far_port", "gateway6", "router_id", "policies(", "sections", "host_interface")
    for word in (*words, "carrier`", "entering`"):
        assert f"| `{word}" in page, word


def test_fences_are_closed(made: dict[str, str]) -> None:
    for place, text in made.items():
        fences = re.findall(r"^.*```.*$", text, re.M)
        assert all(fence.startswith("```") for fence in fences), place
        assert len(fences) % 2 == 0, place
