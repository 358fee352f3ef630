"""Options whose names have changed; the old ones work for one more release, and say so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

OLD_WORDS: dict[str, dict[str, str]] = {
    "analyse": {"--csv": "--format csv", "--racks": "--clusters"},
    "check-routes": {"--from": "--tables"},
    "check-wiring": {"--format": "--facts-format"},
    "design": {"--csv": "--format csv"},
    "expand": {"--racks": "--clusters", "--to": "--whole"},
    "push": {"--old": "--from"},
    "throughput": {"--plot": "--output"},
}
"""For each verb, the old word and the words that say the same now."""


def renewed(verb: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of a verb without old ones, and a line about each of those."""
    known = OLD_WORDS.get(verb, {})
    used = dict.fromkeys(word.partition("=")[0] for word in _options(words))
    lines = [
        f"{old} is called {known[old]} now; the old word goes with the next release"
        for old in used
        if old in known
    ]
    if not lines:
        return list(words), []
    return list(_renewed(known, words)), lines


def _options(words: Sequence[str]) -> Sequence[str]:
    """The words before `--`, behind which everything is an argument."""
    return words[: words.index("--")] if "--" in words else words


def _renewed(known: dict[str, str], words: Sequence[str]) -> Iterator[str]:
    last = len(_options(words))
    for word in words[:last]:
        name, sign, value = word.partition("=")
        new = known.get(name, name).split()
        yield from (*new[:-1], f"{new[-1]}{sign}{value}")
    yield from words[last:]
