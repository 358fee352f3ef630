"""Build hook: in the wheel all folders are in the one package `polarfab`, and imports follow."""

from __future__ import annotations

import ast
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.plugin.interface import IncludedFile

PACKAGE = b"polarfab."


class OnePackage(BuildHookInterface):  # type: ignore[misc]
    """Ships each Python file with its imports rewritten; pyproject.toml's `sources` moves files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Stage the rewritten files, unless the checkout itself is being installed."""
        if version == "editable":
            return
        self.staging = TemporaryDirectory()
        files = {
            _module(file.relative_path): file
            for file in self.build_config.builder.recurse_selected_project_files()
            if file.relative_path.endswith(".py")
        }
        moved = {name for name, file in files.items() if _moves(file)}
        for file in files.values():
            staged = Path(self.staging.name, file.relative_path)
            staged.parent.mkdir(parents=True, exist_ok=True)
            staged.write_bytes(rewritten(Path(file.path).read_bytes(), moved, file.relative_path))
            build_data["force_include"][str(staged)] = file.relative_path

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the staged files."""
        if version != "editable":
            self.staging.cleanup()


def _moves(file: IncludedFile) -> bool:
    return file.distribution_path != file.relative_path


def _module(path: str) -> str:
    """The dotted name of a Python file."""
    parts = PurePath(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def rewritten(source: bytes, moved: set[str], path: str) -> bytes:
    """The source with `polarfab.` before every moved module that is imported or named in a string.

    A string counts when it is a module's whole dotted name, as in `import_module("a.b")` or
    `-m a.b`, or that of an entry point, `a.b:name`. A folder's name alone, such as "inventory",
    is an ordinary word and stays.

    Raises:
        ValueError: a folder is imported in another form than `from folder… import …`.
    """
    places = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module=str(name), level=0) if name in moved:
                places.append((node.lineno, node.col_offset + len("from ")))
            case ast.Constant(value=str(name)) if "." in name and name.partition(":")[0] in moved:
                places.append((node.lineno, node.col_offset + len('"')))
            case ast.Import(names=names) if any(each.name in moved for each in names):
                raise ValueError(f"{path}:{node.lineno}: write it as `from … import …`")
    lines = source.split(b"\n")
    for line, column in sorted(places, reverse=True):
        text = lines[line - 1]
        lines[line - 1] = text[:column] + PACKAGE + text[column:]
    return b"\n".join(lines)
