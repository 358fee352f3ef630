"""How long a motif takes on a network of a paper: compile it, and simulate a collective on it.

A *motif* is a communication pattern of applications; here it is a collective operation.
`polarstar_motifs` calls `motif_time`.
"""

from __future__ import annotations

import json
from functools import partial

from extensions.papers.paper_fabric import PaperFabric
from extensions.papers.result_cache import TimeKey, cached_result
from extensions.simulation.chosen_settings import settings_for
from extensions.simulation.collective_completion import CompletionTime, completion_time
from inventory.problems import InputError


def motif_time(key: TimeKey, quick: bool) -> CompletionTime:
    """The time of a collective, from the result cache unless the network is a small one.

    Args:
        key: the network, the collective and the settings.
        quick: whether the network is a small one, whose times are not cached.
    """
    compute = partial(simulated_time, key)
    return compute() if quick else cached_result(key, compute)


def simulated_time(key: TimeKey) -> CompletionTime:
    """Simulate a collective on a network that is empty.

    Raises:
        InputError: the key has no readable fabric or settings: a file of times was edited.
    """
    try:
        fabric = PaperFabric.of_text(key.fabric)
        build = fabric.build()
        fields = {**fabric.simulated_routing(), **json.loads(key.settings)}
        settings = settings_for(build, (), key.seed, (), fields)
    except (KeyError, TypeError, ValueError) as error:
        given = f"{key.collective}, {key.settings} of {key.fabric}: {type(error).__name__}: {error}"
        todo = "remove the lines of these times"
        raise InputError.of("a time as `reproduce` writes it", given, todo) from error
    return completion_time(build, key.collective, key.size, fabric.hosts, settings, key.rows)
