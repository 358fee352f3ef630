"""docs/targets.md: its table is what the targets themselves say."""

from pathlib import Path

from compilers.spec.target_names import BUILT_IN_SYSTEMS
from compilers.targets.features import AGGREGATES, CHANNELS, INGRESS, REPAIR, SHARES, WEIGHTS
from compilers.targets.target_lookup import target

PAGE = Path(__file__).parents[3] / "docs" / "targets.md"
COLUMNS = (WEIGHTS, SHARES, INGRESS, REPAIR, AGGREGATES, CHANNELS)


def table():
    """The lines of the capability table as they must be."""
    lines = ["| target | options | routes | groups | " + " | ".join(COLUMNS) + " |"]
    lines.append("|---" * (4 + len(COLUMNS)) + "|")
    for name in BUILT_IN_SYSTEMS:
        module = target(name)
        can = module.capabilities
        limits = [f"{limit:,}" if limit else "" for limit in (can.rows, can.groups)]
        options = ", ".join(f"`{option}`" for option in module.options)
        ticks = ["yes" if column in can.features else "" for column in COLUMNS]
        lines.append(
            f"| [{name}]({_page(name)}) | " + " | ".join([options, *limits, *ticks]) + " |"
        )
    return lines


def _page(name):
    return "openflow.md" if name == "ovs" else f"{name}.md"


def test_the_table_is_what_the_targets_say(request):
    text = PAGE.read_text()
    head, rest = text.split("<!-- capabilities -->\n")
    shown, tail = rest.split("<!-- end -->\n")
    wanted = "\n".join(table()) + "\n"
    if request.config.getoption("--update-golden"):
        PAGE.write_text(f"{head}<!-- capabilities -->\n{wanted}<!-- end -->\n{tail}")
    else:
        assert shown == wanted


def test_every_target_has_its_page():
    assert all((PAGE.parent / _page(name)).is_file() for name in BUILT_IN_SYSTEMS)
