"""How long a motif takes on a network of a paper: compile it, and simulate a collective on it."""

from __future__ import annotations

import json
from functools import partial

from extensions.papers.kept_points import TimeOf, kept_point
from extensions.papers.latency_curves import PaperFabric
from extensions.simulation.build_simulation import settings_for
from extensions.simulation.collective_completion import CompletionTime, completion_time
from inventory.problems import InputError


def motif_time(what: TimeOf, quick: bool) -> CompletionTime:
    """The time of a collective; of whole sizes, from the points that are kept, or kept then.

    Args:
        what: the network, the collective and the settings.
        quick: whether it is of a small network, whose times are not kept.
    """
    compute = partial(simulated_time, what)
    return compute() if quick else kept_point(what, compute)


def simulated_time(what: TimeOf) -> CompletionTime:
    """Simulate a collective on a network that is empty.

    Raises:
        InputError: a file of times was edited.
    """
    try:
        fabric = PaperFabric.of_text(what.fabric)
        build = fabric.build()
        fields = {**fabric.simulated_routing(), **json.loads(what.settings)}
        settings = settings_for(build, (), what.seed, (), fields)
    except (KeyError, TypeError, ValueError) as error:
        words = f"{what.collective}, {what.settings} of {what.fabric}: {type(error).__name__}"
        todo = "remove the lines of these times"
        required = "a time as reproduce -o writes it"
        raise InputError.of(required, f"{words}: {error}", todo) from error
    return completion_time(build, what.collective, what.size, fabric.hosts, settings, what.rows)
