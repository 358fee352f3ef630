"""What several test modules of this folder and of others use."""

from __future__ import annotations

from pathlib import Path

from compilers.cabling.netbox_export import files
from compilers.spec.fabric_file import load_fabric
from polarfab.commands.hardware.inventory import command


def export(fabric: Path, folder: Path) -> None:
    for name, text in files(load_fabric(fabric), "lab"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def imported(folder: Path, output: Path) -> None:
    command.main(["import", str(folder), "-o", str(output)], standalone_mode=False)
