"""The check of the settings that OpenSM and MPI jobs get: opensm.conf and hosts.env.

A service level (SL) in a packet chooses its virtual lane (VL). With one lane OpenSM needs only the
settings of `SETTINGS`; with several it also needs those of `LANE_SETTINGS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compilers.readers.exact_text import exact_number, is_number
from extensions.infiniband.lid_walk import LANES
from extensions.infiniband.settings_text import ABSENT, read_settings
from extensions.infiniband.subnet_files import SubnetFiles

WEIGHT_LIMIT = 256
"""Weights of virtual lanes are smaller than this."""
ROUTING_SETTINGS = ("qos", "max_op_vls", "lash", "routing", "lmc", "lfts", "sm_", "enable_quirks")
"""The beginnings of settings that change forwarding: a user cannot accept them as differences."""
SettingTest = Callable[[str, int, int], bool]
"""Whether a value is right, from the value, the number of lanes and the LIDs of a host."""


@dataclass(frozen=True, slots=True)
class SettingRule:
    """The values that are right for a setting of opensm.conf."""

    fits: SettingTest
    """Whether a value is right."""
    expected: str
    """The right values, in words; `{}` stands for the number of lanes."""


SETTINGS = {
    "routing_engine": SettingRule(
        lambda value, *_: value == "file,no_fallback", "file,no_fallback"
    ),
    "lfts_file": SettingRule(lambda value, *_: value.endswith("/lfts.txt"), "a folder's lfts.txt"),
    "lmc": SettingRule(
        lambda value, _, lids: value == str(lids.bit_length() - 1), "that of the build"
    ),
}
"""The settings that every opensm.conf has."""
LANE_SETTINGS = {
    "qos": SettingRule(lambda value, *_: value == "TRUE", "TRUE"),
    "qos_policy_file": SettingRule(
        lambda value, *_: value.endswith("/qos-policy.conf"), "a folder's qos-policy.conf"
    ),
    "qos_max_vls": SettingRule(
        lambda value, lanes, _: is_number(value) and lanes <= exact_number(value) < LANES,
        "at least {}",
    ),
    "qos_high_limit": SettingRule(lambda value, *_: value == "255", "255"),
    "qos_vlarb_high": SettingRule(
        lambda value, *_: value == "0:0", "0:0: no lane goes before others"
    ),
    "qos_vlarb_low": SettingRule(
        lambda value, lanes, _: weighted_lanes(value) == list(range(lanes)),
        "a weight for each of {} lanes",
    ),
    "qos_sl2vl": SettingRule(
        lambda value, lanes, _: maps_levels_to_lanes(value, lanes),
        "a lane for each of {} levels",
    ),
}
"""The settings that an opensm.conf also has if there are several lanes. A port without an entry
in `qos_vlarb_low` never sends on that lane (InfiniBand Architecture Specification, volume 1,
7.6.9.2)."""


def weighted_lanes(text: str) -> list[int]:
    """The lanes of an arbitration table, `LANE:WEIGHT,…`, that have a weight; [] if malformed."""
    entries = [entry.partition(":") for entry in text.split(",")]
    if not all(is_number(lane) and is_number(weight) for lane, _, weight in entries):
        return []
    return sorted(
        exact_number(lane) for lane, _, weight in entries if 0 < exact_number(weight) < WEIGHT_LIMIT
    )


def maps_levels_to_lanes(text: str, lanes: int) -> bool:
    """Whether a list of lanes by service level gives each of the first levels its own lane."""
    by_level = text.split(",")
    are_lanes = all(is_number(lane) and exact_number(lane) < LANES for lane in by_level)
    return by_level[:lanes] == [str(lane) for lane in range(lanes)] and are_lanes


def check_settings(files: SubnetFiles) -> None:
    """Compare opensm.conf; a setting without a rule differs, too, as it may undo others."""
    file, differences, lanes = (
        files.folder / "opensm.conf",
        files.differences,
        files.virtual_lanes.count,
    )
    settings = read_settings(file, differences)
    rules = SETTINGS | (LANE_SETTINGS if lanes > 1 else {})
    for name in rules.keys() | settings.keys():
        value = settings.get(name, ABSENT)
        stated = f"{name} {value.text}"
        if rule := rules.get(name):
            if not rule.fits(value.text, lanes, files.lids_per_host):
                differences.add(file, value.line, stated, rule.expected.format(lanes))
        elif name.startswith(ROUTING_SETTINGS):
            differences.add(file, value.line, stated, "no such setting")
        else:
            differences.add_statement(file, value.line, stated)


def check_environment(files: SubnetFiles) -> None:
    """Compare hosts.env: the environment variables by which MPI jobs use several LIDs."""
    file, differences = files.folder / "hosts.env", files.differences
    uses_levels = files.lid_layers is not None or files.virtual_lanes.count > 1
    expected = {
        "OMPI_MCA_btl_openib_max_lmc": str(files.lids_per_host.bit_length() - 1),
        "OMPI_MCA_btl_openib_ib_path_record_service_level": str(int(uses_levels)),
        "UCX_IB_LID_PATH_BITS": f"0-{files.lids_per_host - 1}",
        "UCX_IB_NUM_PATHS": str(files.lids_per_host),
    }
    settings = read_settings(file, differences, "=")
    for name in expected.keys() | settings.keys():
        value = settings.get(name, ABSENT)
        if value.text != expected.get(name, ABSENT.text):
            stated = f"{name}={value.text}"
            differences.add(file, value.line, stated, expected.get(name, ABSENT.text))
