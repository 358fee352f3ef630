from __future__ import annotations

from pathlib import Path

from compilers.workers.source_digest import folder_digest


def test_caches_of_compiled_code_are_no_sources(tmp_path: Path) -> None:
    """Numba keeps its own beside ours, while we run."""
    (tmp_path / "a.py").write_text("a = 1\n")
    before = folder_digest(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.advance-1.py311.nbi").write_bytes(b"compiled")
    assert folder_digest(tmp_path) == before
