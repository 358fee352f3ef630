"""Which devices of a site are switches of a fabric, by the words of their role."""

from __future__ import annotations

import re

SWITCH = re.compile(
    r"[a-z]*switch(es)?|[a-z]*lea(f|fs|ves)|[a-z]*spines?|tors?|[a-z]*routers?|fabrics?"
)
BESIDE = re.compile(
    r"oob|oobm|ipmi|bmc|management|mgmt|console|terminal|kvm|san|fc|fibre|wireless|wlan|wifi|pdus?|ups"
)
"""A switch with one of these words is in a network beside the fabric."""
OTHERS = re.compile(
    r"servers?|hosts?|compute|computes|computers?|hypervisors?|gpus?|storage|nas|workstations?|"
    r"desktops?|laptops?|vms?|clients?|databases?|backup|power|firewalls?|fw|loadbalancers?|"
    r"balancers?|lb|panels?|patch|cassettes?|cameras?|sensors?|phones?|printers?|points?|aps?|"
    r"modems?|optical|wdm|dwdm|mux|amplifiers?|cooling|chillers?|crac|cdu|appliances?|probes?|taps?"
)
"""Words that a role of something else has."""


def is_switch(role: str) -> bool:
    """Whether devices of a role may be nodes: all but those whose words say that they are not."""
    words = re.findall(r"[a-z]+", role.lower())
    if any(BESIDE.fullmatch(word) for word in words) or "out of band" in " ".join(words):
        return False
    if any(SWITCH.fullmatch(word) for word in words):
        return True
    return not any(OTHERS.fullmatch(word) for word in words)
