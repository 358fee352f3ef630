"""The mark of a build says what was proved of it, by this run and by earlier ones."""

import json

import pytest

from compilers.pipeline import compile_fabric
from compilers.proof.proof_options import WITHOUT_FAILURES, ProofOptions
from compilers.proof.proved import Proved
from compilers.proof.verification import judge
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import save


@pytest.fixture(scope="module")
def build():
    return compile_fabric(
        load_fabric(
            {
                "name": "lab",
                "topology": {"family": "polarfly", "q": 3},
                "routing": {"balance": "compact-valiant", "protect": "node"},
            }
        )
    )


@pytest.fixture
def folder(build, tmp_path):
    save(build, tmp_path / "build")
    return tmp_path / "build"


def test_what_was_proved_stays_proved(build, folder):
    judge([build], [folder], ProofOptions(failures=["link", "node", "2"], channels=True))
    judge([build], [folder], WITHOUT_FAILURES)
    assert Proved.read(folder, build).failures == ("link", "node", "2")
    judge([build], [folder], ProofOptions(failures=(), channels=True))
    assert Proved.read(folder, build).channels


def test_channels_are_proved_under_every_failure_that_is_promised(build, folder):
    for kinds in (None, (), ["link"], ["2"]):
        report = judge([build], [folder], ProofOptions(failures=kinds, channels=True)).reports[0]
        assert report.channels.is_deadlock_free
        assert not Proved.read(folder, build).channels
    judge([build], [folder], ProofOptions(failures=["link", "node"], channels=True))
    assert Proved.read(folder, build).channels


def test_a_sample_is_no_proof(build, folder):
    report = judge([build], [folder], ProofOptions(failures=["2"], sample=10)).reports[0]
    assert report.failures[0].cases == 10 < report.failures[0].all_cases
    assert report.failures[0].lost_pairs == report.failures[0].cut_off
    assert Proved.read(folder, build).failures == ()


def test_a_sample_leaves_what_was_proved_of_its_kind(build, folder):
    judge([build], [folder], ProofOptions(failures=["link", "2"]))
    judge([build], [folder], ProofOptions(failures=["2"], sample=10))
    assert Proved.read(folder, build).failures == ("link", "2")


def test_the_mark_of_another_build_proves_nothing(build, folder):
    judge([build], [folder])
    mark = folder / "verified.json"
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "build": "0" * 16}))
    judge([build], [folder], WITHOUT_FAILURES)
    assert Proved.read(folder, build).failures == ()


def test_a_folder_that_cannot_be_marked_is_named_whatever_comes_after(build, tmp_path):
    folders = [tmp_path / "1", tmp_path / "2"]
    for folder in folders:
        save(build, folder)
    (folders[0] / "verified.json").mkdir()
    done = judge([build, build], folders, WITHOUT_FAILURES)
    assert done.unmarked.startswith(f"cannot mark {folders[0]} as verified or not: ")
    assert Proved.read(folders[1], build).delivery
