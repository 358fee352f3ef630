"""`polarfab cables`: the files of the example, JSON, and wrong options."""

import json
from pathlib import Path

import pytest

from compilers.build import save
from compilers.load import load_fabric
from compilers.pipeline import compile_fabric

EXAMPLE = Path(__file__).parents[2] / "examples" / "q7-copackaged"


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    folder = tmp_path_factory.mktemp("q7") / "build"
    save(compile_fabric(load_fabric(EXAMPLE / "fabric.yaml")), folder)
    return folder


def test_files_of_the_example_are_what_the_commands_write(polarfab, build, tmp_path, request):
    update = request.config.getoption("--update-golden")
    for form, file in (
        ("csv", "cables.csv"),
        ("markdown", "cables.md"),
        ("labels", "labels.html"),
        ("bom", "bom.csv"),
    ):
        out = EXAMPLE / file if update else tmp_path / file
        code, _, err = polarfab("cables", build, "--format", form, "-o", out)
        assert code == 0, err
        assert out.read_text() == (EXAMPLE / file).read_text()


def test_json_of_the_command(polarfab, build):
    code, out, _ = polarfab("cables", build, "--json", "--phases", "2")
    document = json.loads(out)
    assert code == 0
    assert document["cables"] == len(document["schedule"]) == 224
    assert document["cluster_pairs"] == {"5": 21, "8": 7}
    assert [p["phase"] for p in document["phases"]] == [1, 2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rack", "c1"], "there is no rack c1; did you mean C1?"),
        (["--phase", "9"], "there are 8 phases"),
        (["--json", "--format", "csv"], "exclude each other"),
        (["--format", "csv", "-o", "nowhere/x"], "required a file that can be written"),
    ],
)
def test_wrong_options(polarfab, build, words, message):
    code, _, err = polarfab("cables", build, *words)
    assert code == 2
    assert message in err
