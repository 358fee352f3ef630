"""Decide by the words of a device's role whether it may be a switch of a fabric.

An import of a site asks `is_switch` if the user names no roles.
"""

from __future__ import annotations

import re

SWITCH = re.compile(
    r"[a-z]*switch(es)?|[a-z]*lea(f|fs|ves)|[a-z]*spines?|tors?|[a-z]*routers?|fabrics?"
)
"""A word of the role of a switch, such as `leaf` or `tor`."""
OTHER_NETWORKS = re.compile(
    r"oob|oobm|ipmi|bmc|management|mgmt|console|terminal|kvm|san|fc|fibre|wireless|wlan|wifi|pdus?|ups"
)
"""A word of the role of a switch in another network than the fabric, such as management."""
OTHER_DEVICES = re.compile(
    r"servers?|hosts?|compute|computes|computers?|hypervisors?|gpus?|storage|nas|workstations?|"
    r"desktops?|laptops?|vms?|clients?|databases?|backup|power|firewalls?|fw|loadbalancers?|"
    r"balancers?|lb|panels?|patch|cassettes?|cameras?|sensors?|phones?|printers?|points?|aps?|"
    r"modems?|optical|wdm|dwdm|mux|amplifiers?|cooling|chillers?|crac|cdu|appliances?|probes?|taps?"
)
"""A word of the role of a device that is no switch."""


def is_switch(role: str) -> bool:
    """Whether devices of a role may be nodes; also if no word of the role is known."""
    words = re.findall(r"[a-z]+", role.lower())
    if any(OTHER_NETWORKS.fullmatch(word) for word in words) or "out of band" in " ".join(words):
        return False
    if any(SWITCH.fullmatch(word) for word in words):
        return True
    return not any(OTHER_DEVICES.fullmatch(word) for word in words)
