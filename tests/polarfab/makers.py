"""What several test modules of this folder and of others use."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


PAGE = ROOT / "docs" / "targets" / "index.md"


def install(site, project, entries, group="polarfab.targets"):
    """Put an installed package's metadata into a folder, as pip does."""
    info = site / f"{project.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{lines}")


def polarfab(*sites, words):
    """What a call says, with packages installed in these folders: exit code, output, errors."""
    path = os.pathsep.join(map(str, (*sites, ROOT)))
    done = subprocess.run(
        [sys.executable, "-m", "polarfab", *map(str, words)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr
