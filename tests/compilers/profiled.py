"""Builds whose switches have a certain OpenFlow profile by their node types."""

from dataclasses import asdict, replace

from compilers.wiring.generated_inventory import generated_inventory
from compilers.wiring.hardware import hardware_of_inventory
from compilers.wiring.placement import layout_or_whole


def with_profile(build, profile):
    """The build, its node types with this profile."""
    hosts = build.wiring.host_port.shape[1]
    inventory = generated_inventory(build.topology, hosts)
    keys = {key: value for key, value in asdict(profile).items() if key != "name"}
    found = hardware_of_inventory(inventory, build.wiring, layout_or_whole(build.topology))
    types = tuple(replace(facts, openflow=keys) for facts in found.types)
    return replace(build, hardware=replace(found, types=types))
