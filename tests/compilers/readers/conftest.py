"""What tests of readers share."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from compilers.readers.bgp.bgp_files import read_speaker
from compilers.readers.bgp.bgp_speaker import BgpSwitch, SpeakerOptions
from compilers.readers.routers.router_files import RouterFolder
from compilers.targets.routed import p2p_target


@pytest.fixture(scope="module")
def read_once() -> Iterator[None]:
    """Read the folder of a switch again only if one of its files has changed.

    A change of a speaker is judged with all other speakers, whose files are what they were.
    """
    kept: dict[object, BgpSwitch] = {}

    def read(
        form: RouterFolder, folder: Path, options: SpeakerOptions, definitions: Collection[str] = ()
    ) -> BgpSwitch:
        files = sorted(path for path in folder.iterdir() if path.is_file())
        texts = tuple((path, path.read_bytes()) for path in files)
        key = form.target, options, tuple(definitions), texts
        if key not in kept:
            kept[key] = read_speaker(form, folder, options, definitions)
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(p2p_target, "read_speaker", read)
        yield
