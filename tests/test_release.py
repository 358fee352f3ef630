"""`make release`: what it refuses, and that it stops before it uploads."""

import io
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import release

ROOT = Path(__file__).resolve().parent.parent
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-31\n\n- Faster.\n"
WHO = ["-c", "user.name=a", "-c", "user.email=a@example.org"]


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", folder, *WHO, *words], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A checkout that can be released."""
    (tmp_path / "polarfab").mkdir()
    (tmp_path / "polarfab/__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "--initial-branch", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--message", "All")
    return tmp_path


def refusals(checkout: Path, commit: bool = True) -> list[str]:
    if commit:
        git(checkout, "commit", "--all", "--allow-empty", "--message", "More")
    return [str(problem) for problem in release.problems(checkout)]


def test_a_checkout_that_can_be_released(checkout):
    assert refusals(checkout) == []


def test_another_branch_and_changes(checkout):
    git(checkout, "switch", "--create", "topic")
    (checkout / "notes").touch()
    assert refusals(checkout, commit=False) == [
        "branch: required the branch main, given topic; git switch main",
        "tree: required a tree without changes, given changes in notes; "
        "commit them, or take them back",
    ]


def test_a_version_that_has_a_tag(checkout):
    git(checkout, "tag", "v1.2.3")
    (refusal,) = refusals(checkout)
    assert refusal.startswith("version: required a new version, given 1.2.3")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[Unreleased]\n", "[Unreleased]\n- More.\n", "required nothing under Unreleased"),
        ("- Faster.\n", "", "required entries under ## [1.2.3], given none"),
        ("2026-01-31", "2026-02-31", "## [1.2.3] - YYYY-MM-DD, given 2026-02-31"),
        ("2026-01-31", "9999-01-01", "## [1.2.3] - YYYY-MM-DD, given 9999-01-01"),
    ],
)
def test_a_changelog_that_is_not_ready(checkout, old, new, said):
    (checkout / "CHANGELOG.md").write_text(CHANGELOG.replace(old, new))
    (refusal,) = refusals(checkout)
    assert said in refusal


def test_what_must_not_be_in_a_distribution(tmp_path):
    wheel, source = tmp_path / "polarfab-1.2.3-py3-none-any.whl", tmp_path / "polarfab-1.2.3.tar.gz"
    held = {
        "polarfab/a.py": b"",
        "polarfab-1.2.3.dist-info/METADATA": b"",
        "inventory/b.py": b"",
        "polarfab/c.json": b'"/srv/me/here"',
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in held.items():
            archive.writestr(name, content)
    with tarfile.open(source, "w:gz") as archive:
        for name in ("polarfab/a.py", "tests/data/big.json", ".ci/run"):
            archive.addfile(tarfile.TarInfo(f"polarfab-1.2.3/{name}"), io.BytesIO())
    assert list(release.unwanted(wheel, ("/srv/me",))) == [
        "inventory/b.py is outside of the package",
        "polarfab/c.json names /srv/me, a folder of this machine",
    ]
    assert list(release.unwanted(source, ("/srv/me",))) == [
        "polarfab-1.2.3/tests/data/big.json is of the checkout only",
        "polarfab-1.2.3/.ci/run is of the checkout only",
    ]


def test_a_refusal_builds_nothing(checkout):
    git(checkout, "switch", "--create", "topic")
    with pytest.raises(release.InputError, match="required the branch main"):
        release.release(checkout)
    assert not (checkout / "dist").exists()


@pytest.mark.long
def test_a_release_up_to_the_upload(tmp_path):
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", "--no-tags", ROOT, checkout], check=True)
    git(checkout, "switch", "--force-create", "main")
    changelog = (checkout / "CHANGELOG.md").read_text()
    dated = f"## [Unreleased]\n\n## [{release.version_of(checkout)}] - 2026-01-31"
    (checkout / "CHANGELOG.md").write_text(changelog.replace("## [Unreleased]", dated, 1))
    git(checkout, "commit", "--all", "--message", "Date the release")
    done = subprocess.run(
        [sys.executable, "release.py"], cwd=checkout, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "nothing is uploaded" in done.stdout
    source, bill, wheel = sorted((checkout / "dist").iterdir(), key=lambda file: file.suffix)
    assert (source.suffix, wheel.suffix) == (".gz", ".whl")
    parts = {part["name"].lower() for part in json.loads(bill.read_text())["components"]}
    assert {"polarfab", "numpy", "galois", "networkx", "pyyaml", "jinja2"} <= parts
