"""The numbers of OpenFlow against those of Ryu."""

from ryu.ofproto import nicira_ext, ofproto_common
from ryu.ofproto import ofproto_v1_3 as ryu

from compilers.targets.openflow import protocol

NAMES = {
    protocol.MessageType: "OFPT_{}",
    protocol.FlowCommand: "OFPFC_{}",
    protocol.GroupCommand: "OFPGC_{}",
    protocol.GroupType: "OFPGT_{}",
    protocol.Multipart: "OFPMP_{}",
    protocol.ControllerRole: "OFPCR_ROLE_{}",
    protocol.ErrorType: "OFPET_{}",
    protocol.BadRequest: "OFPBRC_{}",
    protocol.BadInstruction: "OFPBIC_{}",
    protocol.FlowModFailed: "OFPFMFC_{}",
    protocol.GroupModFailed: "OFPGMFC_{}",
    protocol.Instruction: "OFPIT_{}",
}
RYU = {
    "OFPGT_FAST_FAILOVER": "OFPGT_FF",
    "OFPET_FLOW_MOD": "OFPET_FLOW_MOD_FAILED",
    "OFPET_GROUP_MOD": "OFPET_GROUP_MOD_FAILED",
    "OFPBRC_BAD_EXPERIMENTER_TYPE": "OFPBRC_BAD_EXP_TYPE",
    "OFPBIC_UNSUPPORTED_METADATA": "OFPBIC_UNSUP_METADATA",
    "OFPBIC_UNSUPPORTED_METADATA_MASK": "OFPBIC_UNSUP_METADATA_MASK",
}
CONSTANTS = {
    "VERSION": ryu.OFP_VERSION,
    "ALL_TABLES": ryu.OFPTT_ALL,
    "ANY": ryu.OFPP_ANY,
    "IN_PORT": ryu.OFPP_IN_PORT,
    "TABLES": ryu.OFPP_TABLE,
    "CONTROLLER": ryu.OFPP_CONTROLLER,
    "LOCAL": ryu.OFPP_LOCAL,
    "ALL_GROUPS": ryu.OFPG_ALL,
    "WHOLE_PACKET": ryu.OFPCML_NO_BUFFER,
    "ONF": ofproto_common.ONF_EXPERIMENTER_ID,
    "NICIRA": ofproto_common.NX_EXPERIMENTER_ID,
    "OXM_MATCH": ryu.OFPMT_OXM,
    "PORT_DOWN": ryu.OFPPC_PORT_DOWN,
    "PORT_BLOCKED": ryu.OFPPS_BLOCKED,
    "PORT_NO_RECEIVE": ryu.OFPPC_NO_RECV,
    "PORT_NO_FORWARD": ryu.OFPPC_NO_FWD,
    "PORT_DELETED": ryu.OFPPR_DELETE,
    "PORT_MODIFIED": ryu.OFPPR_MODIFY,
    "MORE_PARTS": ryu.OFPMPF_REPLY_MORE,
}
NUMBERS = [
    (RYU.get(name := form.format(number.name), name), number)
    for numbers, form in NAMES.items()
    for number in numbers
]
ELSEWHERE = {
    "in_port_16": (0x0000, 0, 2),
    "reg0": (0x0001, 0, 4),
    "nd_reserved": (0x1000, 1, 4),
    "nd_options_type": (0x1000, 2, 1),
}
"""Fields that Ryu does not know, Ericsson's, or has elsewhere; from ovs-fields(7)."""


def test_numbers_and_constants_are_those_of_ryu():
    assert [(name, getattr(ryu, name)) for name, _ in NUMBERS] == NUMBERS
    assert {name: getattr(protocol, name) for name in CONSTANTS} == CONSTANTS


def test_fields_are_those_of_ryu():
    known = {each.name: (each.num, each.type.size) for each in ryu.oxm_types}
    for field, (space, number, width) in protocol.FIELDS.items():
        name = {"nd_target": "ipv6_nd_target", "nd_tll": "ipv6_nd_tll"}.get(field, field)
        if field in ELSEWHERE:
            assert (space, number, width) == ELSEWHERE[field]
        else:
            assert known[name] == (space << 7 | number, width), field


def test_moved_fields_are_those_of_ryu():
    known = {each.name.removesuffix("_nxm"): each.num for each in nicira_ext.oxm_types}
    for field, (space, number) in protocol.MOVABLE.items():
        assert known[field.removesuffix("_16")] == space << 7 | number, field
