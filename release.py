"""A release, up to the upload: `make release` builds, reads and tries what would be uploaded."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

from inventory.problems import InputError, Problem

ROOT = Path(__file__).parent
VERSION = re.compile(r'^__version__ = "(.+)"$', re.M)
HEADING = re.compile(r"^## \[([^]]+)\](?: - (\S+))?\n(.*?)(?=^## |\Z)", re.M | re.S)
FABRIC = "name: lab\ntopology: {family: polarfly, q: 3}\n"


def version_of(root: Path) -> str:
    """The version, which stands in one place."""
    found = VERSION.search((root / "polarfab/__init__.py").read_text())
    return found[1] if found else ""


def problems(root: Path) -> Iterator[Problem]:
    """Why this checkout cannot be released."""
    branch = _git(root, "branch", "--show-current")
    if branch != "main":
        yield Problem("the branch main", branch or "none", "git switch main", key="branch")
    if changed := _git(root, "status", "--porcelain").splitlines():
        more = f" and {len(changed) - 1} more" if changed[1:] else ""
        given = f"changes in {changed[0][3:]}{more}"
        yield Problem("a tree without changes", given, "commit them, or take them back", key="tree")
    version = version_of(root)
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        todo = "see polarfab/__init__.py"
        yield Problem("a version of three numbers", version or "none", todo, key="version")
    if _git(root, "tag", "--list", f"v{version}"):
        todo = "raise __version__ in polarfab/__init__.py"
        yield Problem("a new version", f"{version}, which has a tag", todo, key="version")
    yield from _undated((root / "CHANGELOG.md").read_text(), version)


def _undated(changelog: str, version: str) -> Iterator[Problem]:
    """Why the changelog does not belong to the version."""
    entries = {name: (day, text.strip()) for name, day, text in HEADING.findall(changelog)}
    if entries.get("Unreleased", ("", ""))[1]:
        todo = f"put what stands there under ## [{version}] - {datetime.now(UTC):%Y-%m-%d}"
        yield Problem("nothing under Unreleased", "entries", todo, key="CHANGELOG.md")
    day, text = entries.get(version, ("", ""))
    if not text:
        todo = "say what is new in it"
        yield Problem(f"entries under ## [{version}]", "none", todo, key="CHANGELOG.md")
    elif not _is_past(day):
        required = f"the day of the release, ## [{version}] - YYYY-MM-DD"
        yield Problem(required, day or "none", "write the day, not after today", key="CHANGELOG.md")


def _is_past(day: str) -> bool:
    try:
        return date.fromisoformat(day) <= datetime.now(UTC).date()
    except ValueError:
        return False


def build(root: Path, folder: Path) -> list[Path]:
    """Build the source distribution, and the wheel from it.

    Every time is that of the commit, so that anybody can build the same bytes.
    """
    environment = os.environ | {"SOURCE_DATE_EPOCH": _git(root, "log", "-1", "--format=%ct")}
    _run(sys.executable, "-m", "build", "--outdir", folder, root, environment=environment)
    return sorted(folder.iterdir())


def unwanted(file: Path, private: tuple[str, ...]) -> Iterator[str]:
    """What must not be in a distribution: tests, benchmarks, other packages, paths of this machine.

    A .gitignore may be there, by hatchling's own rule.
    """
    for name, content in _members(file):
        place = name if file.suffix == ".whl" else name.partition("/")[2]
        if place.startswith(("benchmarks/", "tests/", ".")) and place != ".gitignore":
            yield f"{name} is of the checkout only"
        if file.suffix == ".whl" and not re.match(r"polarfab(-[\d.]+\.dist-info)?/", name):
            yield f"{name} is outside of the package"
        for path in private:
            if path.encode() in content:
                yield f"{name} names {path}, a folder of this machine"


def _members(file: Path) -> Iterator[tuple[str, bytes]]:
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            yield from ((name, archive.read(name)) for name in archive.namelist())
        return
    with tarfile.open(file) as archive:
        for member in archive:
            if held := archive.extractfile(member):
                yield member.name, held.read()


def try_out(wheel: Path, version: str, folder: Path) -> None:
    """Install the wheel in an environment of its own; compile and verify a first fabric."""
    _run(sys.executable, "-m", "venv", folder / "installed")
    built = os.environ | {"PIP_FIND_LINKS": str(wheel.parent)}  # a path would stand in its bill
    pip = folder / "installed/bin/python", "-m", "pip", "install", "--quiet"
    _run(*pip, f"polarfab=={version}", environment=built)
    (folder / "fabric.yaml").write_text(FABRIC)
    polarfab = folder / "installed/bin/polarfab"
    hidden = {"PYTHONPATH", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    for words in (["--version"], ["compile", "fabric.yaml", "-o", "build"], ["verify", "build"]):
        said = _run(polarfab, *words, folder=folder, environment=environment)
        if words == ["--version"] and said.split()[-1] != version:
            raise InputError.of(version, said.strip(), "see polarfab/__init__.py", key="version")


def bill(environment: Path) -> str:
    """The software bill of materials of an environment with the wheel: CycloneDX, as JSON."""
    tool = sys.executable, "-m", "pipx", "run", "--spec", "cyclonedx-bom", "cyclonedx-py"
    return _run(*tool, "environment", "--output-reproducible", environment / "bin/python")


def _git(root: Path, *words: str) -> str:
    return _run("git", "-C", root, *words).rstrip()


def _run(
    *words: str | Path, folder: Path | None = None, environment: dict[str, str] | None = None
) -> str:
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        command = " ".join(str(word) for word in words)
        raise InputError.of("no error", (done.stderr or done.stdout)[-2000:], key=command)
    return done.stdout


def release(root: Path) -> None:
    """Make `dist/` of a checkout that can be released, and say how to upload it.

    Raises:
        InputError: it cannot be released, or what was built is not right.
    """
    if found := list(problems(root)):
        raise InputError(found)
    version = version_of(root)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        print(f"polarfab {version}: build it twice", flush=True)
        files = build(root, work / "dist")
        for one, again in zip(files, build(root, work / "again"), strict=True):
            if one.read_bytes() != again.read_bytes():
                raise InputError.of("the same bytes from both builds", "others", key=one.name)
        private = (str(root), str(Path.home()), name)
        if wrong := [line for file in files for line in unwanted(file, private)]:
            raise InputError.of("nothing of the checkout's own", "; ".join(wrong), key="dist")
        print("read what it says of itself, and try it in an environment of its own", flush=True)
        _run(sys.executable, "-m", "pipx", "run", "twine", "check", "--strict", *files)
        (wheel,) = (file for file in files if file.suffix == ".whl")
        try_out(wheel, version, work)
        parts = bill(work / "installed")
        if told := [path for path in private if path in parts]:
            raise InputError.of("no folder of this machine", ", ".join(told), key="bill")
        (work / "dist" / f"polarfab-{version}.cdx.json").write_text(parts)
        shutil.rmtree(root / "dist", ignore_errors=True)
        shutil.copytree(work / "dist", root / "dist")
    for file in sorted((root / "dist").iterdir()):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        print(f"{digest}  dist/{file.name}")
    tagged = f"git tag -s v{version} && git push origin main v{version}"
    packages = f"dist/polarfab-{version}.tar.gz dist/*.whl"
    upload = f"pipx run twine upload --attestations {packages}*"
    signed = f"pipx run pypi-attestations sign {packages}"
    print(f"nothing is uploaded. To do so: {tagged} && {signed} && {upload}")


if __name__ == "__main__":
    try:
        release(ROOT)
    except InputError as refusal:
        for problem in refusal.problems:
            print(f"error: {problem}", file=sys.stderr)
        sys.exit(2)
