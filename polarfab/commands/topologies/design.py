"""`polarfab design`: lists and compares the fabrics that fit a radix, a size or a hardware."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from inventory.problems import InputError
from polarfab.output.verb_output import (
    chosen_format,
    counted,
    json_option,
    print_csv,
    print_json,
    print_table,
    progress,
    say,
    write_new_files,
)
from polarfab.shared_options import format_option

if TYPE_CHECKING:
    from compilers.evaluation.comparison.candidates import Candidate

HEADINGS = {
    "nodes": "nodes",
    "radix": "radix",
    "links": "links",
    "diameter": "most hops",
    "hosts_per_node": "hosts per node",
    "cost_per_host": "$ per host",
    "moore_efficiency": "Moore share",
    "mean_distance": "mean hops",
    "power_per_host": "W per host",
    "bundles": "bundles",
    "optical_ports_per_host_uniform": "optical ports per host",
}
"""The columns with --radix and --min-nodes, by their keys in --json."""
SIZE_HEADINGS = {
    "price": "k$",
    "nodes": "nodes",
    "links": "links",
    "host_diameter": "hops",
    "hosts_per_node": "hosts",
    "uniform": "uniform",
    "guaranteed": "any",
    "router_ports": "ports",
}
"""The columns with --hosts and --switches; a table with all of them fits 80 characters."""
PORT_BLOCK = re.compile(r"([1-9][0-9]{0,3})x([1-9][0-9]{0,3})(?:G[A-Za-z/]*)?")
"""Equal ports as in `48x25G`: their count, and their speed in Gbit/s."""
SIGNS = {"exact": "", "estimate": "~", "bound": "≥"}
"""By the basis of a share (exact, an estimate or a lower bound), the sign printed before it."""


def _parsed_radix(value: str) -> range:
    """The range of radixes that `15` or `8..128` stands for, both ends included."""
    match = re.fullmatch(r"([0-9]{1,4})(?:\.\.([0-9]{1,4}))?", value)
    if match:
        low, high = int(match[1]), int(match[2] or match[1])
        if 2 <= low <= high <= 4096:
            return range(low, high + 1)
    raise InputError.of("2 to 4096 or a range as in 8..128", value, key="--radix")


class PortCount(click.IntRange):
    """A number of equal ports; for ports of two speeds, the message says which options to use."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number.

        Raises:
            InputError: the value lists ports of several speeds.
        """
        blocks = [PORT_BLOCK.fullmatch(text.strip()) for text in re.split("[+,]", str(value))]
        ports_of_speed = Counter[int]()
        for block in blocks:
            if block:
                ports_of_speed[int(block[2])] += int(block[1])
        if all(blocks) and len(ports_of_speed) > 1:
            fastest, slowest = max(ports_of_speed), min(ports_of_speed)
            count = ports_of_speed[fastest]
            hosts_per_link = fastest // slowest
            smaller = f", or --radix 3..{count} for smaller fabrics, too" if count > 3 else ""
            raise InputError.of(
                key="--ports",
                required="one number, of equal ports for links and hosts",
                given=str(value),
                todo=f"links take the {count} ports of {fastest} Gbit/s, hosts the slower ones: "
                f"say --radix {count}{smaller}; a link carries {hosts_per_link} of the slowest "
                f"hosts, so add --oversubscription {hosts_per_link}",
            )
        return super().convert(value, param, ctx)


@click.command("design")
@click.option(
    "--radix",
    metavar="N|N..M",
    callback=lambda _ctx, _param, value: None if value is None else _parsed_radix(value),
    help="Fabric ports per node; a range as in 8..128.",
)
@click.option(
    "--switches",
    type=click.IntRange(1, 10_000_000),
    help="About how many: the next sizes below and above. Needs --ports.",
)
@click.option(
    "--diameter",
    type=click.IntRange(1, 64),
    help="The most links between two switches with hosts.",
)
@click.option("--hosts", type=click.IntRange(1, 10_000_000), help="What can hold so many hosts.")
@click.option("--budget", type=click.FloatRange(min=0), help="$ for all switches and cables.")
@click.option(
    "--ports",
    type=PortCount(2, 4096),
    help="Ports of a switch, for links and hosts.",
)
@click.option(
    "--oversubscription",
    type=click.FloatRange(min=0, min_open=True),
    help="Hosts over those that uniform traffic runs at full rate for.  [default: 1]",
)
@click.option(
    "--modules", type=click.IntRange(1, 512), help="Optical modules of a node of your hardware."
)
@click.option("--links", type=click.IntRange(1, 512), help="Links of a module of your hardware.")
@click.option("--min-nodes", type=click.IntRange(1, 10_000_000), help="Leave out smaller fabrics.")
@click.option(
    "--family",
    "family_names",
    metavar="FAMILY",
    multiple=True,
    help="Only this family; may be repeated.",
)
@click.option("--baselines", is_flag=True, help="Also the families that the papers compare with.")
@click.option(
    "--best",
    is_flag=True,
    help="The largest of each family at each radix; with --hosts the cheapest.",
)
@click.option(
    "--bisection",
    "with_bisection",
    is_flag=True,
    help="Also the part of the links that a cut in halves has; seconds for each fabric.",
)
@click.option("--sort", "sort_key", help="A key of --json.  [default: nodes; with --hosts price]")
@click.option(
    "--prices",
    "prices_file",
    type=click.Path(path_type=Path),
    help="A YAML file with other prices.",
)
@format_option("csv", what="csv has every column")
@click.option(
    "--write",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write fabric.yaml and inventory.yaml of the first that polarfab compiles.",
)
@json_option
def command(
    radix: range | None,
    switches: int | None,
    diameter: int | None,
    hosts: int | None,
    budget: float | None,
    ports: int | None,
    oversubscription: float | None,
    modules: int | None,
    links: int | None,
    min_nodes: int | None,
    family_names: tuple[str, ...],
    baselines: bool,
    best: bool,
    with_bisection: bool,
    sort_key: str | None,
    prices_file: Path | None,
    form: str | None,
    write: Path | None,
    as_json: bool,
) -> None:
    """List the fabrics that can be built, and compare them. Sizes come from formulas.

    \b
    polarfab design --radix 32             largest first; a family without
                                           radix 32: its next smaller one
    polarfab design --radix 8..128 --best  exactly these radixes
    polarfab design --modules 4 --links 8  a node with 4 x 8 fabric ports
    polarfab design --min-nodes 5000       at each family's smallest radix
    polarfab design --hosts 300 --budget 400000 --ports 16     cheapest first
    polarfab design --hosts 300 --family polarfly --write lab  its two files
    polarfab design --switches 45 --ports 16 --diameter 2      next sizes
    polarfab design --radix 15 --baselines --best --bisection  cut in halves

    Exit code 1 where there are none.
    """
    from polarfab.topologies import design

    printed = chosen_format(form, as_json)
    if modules or links:
        radix = _radix_of_modules(radix, modules, links)
    limits = FabricLimits(
        radix=radix,
        min_nodes=min_nodes,
        hosts=hosts,
        switches=switches,
        ports=ports,
        diameter=diameter,
        budget=budget,
        oversubscription=oversubscription,
    )
    limits.require_consistent()
    candidates = design(
        radix[0] if radix and len(radix) == 1 else radix,
        min_nodes or 1,
        links_per_module=links,
        families=family_names,
        baselines=baselines,
        best=best,
        sort=sort_key,
        prices=prices_file,
        hosts=hosts,
        ports=ports,
        oversubscription=oversubscription or 1.0,
        budget=budget,
        switches=switches,
        diameter=diameter,
    )
    rows = [candidate.row() for candidate in candidates]
    if with_bisection:
        _add_bisections(rows, candidates)
    if printed == "json":
        print_json(rows)
    elif printed == "csv":
        print_csv([_csv_row(row) for row in rows])
    elif rows:
        default_key = "price" if hosts is not None else "nodes"
        _print_fabrics(candidates, rows, limits, sort_key or default_key)
    if not rows:
        _exit_without_fabrics(limits)
    if write is not None:
        _write_first(candidates, write, limits.is_sized)


@dataclass(frozen=True, slots=True)
class FabricLimits:
    """What the fabrics have to meet, as options say it; None: the option is not used."""

    radix: range | None
    """--radix, or the product of --modules and --links."""
    min_nodes: int | None
    """--min-nodes."""
    hosts: int | None
    """--hosts."""
    switches: int | None
    """--switches."""
    ports: int | None
    """--ports."""
    diameter: int | None
    """--diameter."""
    budget: float | None
    """--budget."""
    oversubscription: float | None
    """--oversubscription."""

    @property
    def is_sized(self) -> bool:
        """Whether the fabrics are of a size that is named, by --hosts or --switches."""
        return self.hosts is not None or self.switches is not None

    def require_consistent(self) -> None:
        """Pass when these options go together.

        Raises:
            UsageError: they do not.
        """
        if self.radix is None and self.min_nodes is None and not self.is_sized:
            raise click.UsageError(
                "say --hosts, --switches, --radix, --modules and --links, or --min-nodes"
            )
        if self.hosts is not None and self.switches is not None:
            raise click.UsageError("say --hosts or --switches, not both")
        for option, value in (
            ("--budget", self.budget),
            ("--ports", self.ports),
            ("--diameter", self.diameter),
        ):
            if value is not None and not self.is_sized:
                raise click.UsageError(f"{option} needs --hosts or --switches")
        if self.oversubscription is not None and self.hosts is None:
            raise click.UsageError("--oversubscription needs --hosts")
        if self.switches is None:
            return
        if self.ports is None:
            raise click.UsageError("--switches needs --ports, for links and hosts")
        if self.radix is not None or self.min_nodes is not None:
            raise click.UsageError("--switches goes without --radix, --modules and --min-nodes")

    def title(self) -> str:
        """The title of a table of these fabrics."""
        if self.hosts is not None:
            return f"fabrics for {self.hosts:,} hosts"
        if self.switches is None:
            return _title_of_radix(self.radix, self.min_nodes)
        title = f"fabrics of about {self.switches:,} switches of {self.ports} ports"
        if self.diameter is not None:
            title += f", at most {counted(self.diameter, 'link')} apart"
        return title


def _radix_of_modules(radix: range | None, modules: int | None, links: int | None) -> range:
    """The radix of a node with so many modules of so many links."""
    if radix or not (modules and links):
        raise click.UsageError("say both --modules and --links, without --radix")
    return _parsed_radix(f"{modules * links}")


def _title_of_radix(radix: range | None, min_nodes: int | None) -> str:
    """The title of a table of fabrics with these radixes, and at least so many nodes."""
    title = "fabrics of the smallest radix" if radix is None else f"fabrics of radix {radix[0]}"
    if radix is not None and len(radix) > 1:
        title += f" to {radix[-1]}"
    if min_nodes:
        title += f" with {min_nodes:,} nodes or more"
    return title


def _exit_without_fabrics(limits: FabricLimits) -> NoReturn:
    """Say that there are no such fabrics, and which limits to raise.

    Raises:
        Exit: with code 1.
    """
    remedies = ["more --ports"] if limits.is_sized else []
    if limits.hosts is not None:
        remedies += ["--oversubscription", "other --hosts"]
    if limits.is_sized and limits.diameter is not None:
        remedies.append("a larger --diameter")
    todo = f"; allow {' or '.join(remedies)}" if remedies else ""
    each_switch = ", one or more at each switch for hosts" if limits.hosts is not None else ""
    click.echo(f"there are no {limits.title()}{each_switch}{todo}", err=True)
    raise click.exceptions.Exit(1)


def _add_bisections(rows: Sequence[dict[str, Any]], candidates: Sequence[Candidate]) -> None:
    """Add to each row the part of the links that a cut in halves has, and its basis."""
    from compilers.evaluation.comparison.bisections import bisection_share

    with progress("bisection") as bar:
        for done, (row, candidate) in enumerate(zip(rows, candidates, strict=True), 1):
            bisection = bisection_share(candidate.design)
            row["bisection"] = bisection.share if bisection else None
            row["bisection_basis"] = bisection.basis if bisection else None
            if bar:
                bar(done, len(rows))


def _csv_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row for CSV, with the parameters as one text."""
    parameters = " ".join(f"{name}={value}" for name, value in row["parameters"].items())
    return {**row, "parameters": parameters}


def _print_fabrics(
    candidates: Sequence[Candidate],
    rows: Sequence[dict[str, Any]],
    limits: FabricLimits,
    sort_key: str,
) -> None:
    """Print a table of fabrics, and what its columns mean.

    Args:
        candidates: the fabrics, at least one.
        rows: a row for each.
        limits: what the fabrics meet.
        sort_key: the key that the fabrics are sorted by.
    """
    headings = SIZE_HEADINGS if limits.is_sized else HEADINGS
    # The key comes first, because columns that do not fit are left out from the right.
    columns = {sort_key: headings.get(sort_key, sort_key.replace("_", " "))}
    if "bisection" in rows[0]:
        columns["bisection"] = "bisection"
    columns |= headings
    body = [
        [candidate.name, *(_cell(row, column) for column in columns)]
        for candidate, row in zip(candidates, rows, strict=True)
    ]
    print_table(limits.title(), ["fabric", *columns.values()], body)
    if limits.is_sized:
        _explain_columns()


def _cell(row: dict[str, Any], column: str) -> object:
    """The value of a column, with a sign if it is a bound or an estimate."""
    value = row[column]
    if column in ("uniform", "guaranteed") and value is not None:
        basis = row[f"{column}_basis"]
        sign = "" if value == 1 and basis == "bound" else SIGNS[basis]
        return f"{sign}{value:.0%}"
    if column == "bisection":
        return None if value is None else f"≤{value:.1%}"
    if column == "price":
        return round(value / 1000)
    if column == "hosts_per_node" and row["one_host_more_at"]:
        return f"{value}–{value + 1}"
    return value


def _explain_columns() -> None:
    """Explain the columns of fabrics of a size."""
    say(
        "k$: $1,000 for all switches and the links between them; hosts and ports: of a switch\n"
        "uniform: the share of its link's rate that every host can send on shortest paths\n"
        "any: the share that it can send under any traffic, with `init --traffic any`\n"
        "by formula; ~ an estimate, ≥ at least; `polarfab throughput --guarantee` is exact"
    )


def _write_first(candidates: Sequence[Candidate], folder: Path, is_sized: bool) -> None:
    """Write the files of the first candidate that polarfab compiles.

    Args:
        candidates: the fabrics.
        folder: for the files.
        is_sized: whether the candidates were selected by --hosts or --switches, for routers with
            --ports.

    Raises:
        InputError: polarfab compiles no candidate.
    """
    from compilers.topology.families import FAMILIES
    from compilers.wiring.starter_files import StarterFiles

    candidate = next(
        (candidate for candidate in candidates if candidate.design.family in FAMILIES), None
    )
    if candidate is None:
        required = f"one of {', '.join(FAMILIES)} among the fabrics"
        raise InputError.of(required, "none", "list others", key="--write")
    parameters = candidate.design.parameters
    ports = candidate.router_ports if is_sized else None
    texts = StarterFiles.of(
        folder.resolve().name,
        candidate.design.family,
        parameters,
        candidate.hosts,
        more=candidate.nodes_with_one_more,
        ports=ports,
    ).texts()
    write_new_files(folder, texts)
    hosts_per_node = f"{counted(candidate.hosts, 'host')} per node"
    if candidate.nodes_with_one_more:
        hosts_per_node += f", {candidate.hosts + 1} at {candidate.nodes_with_one_more} of them"
    say(f"{candidate.name} with {hosts_per_node}")
