"""A Ryu app of somebody else: a learning switch, for two switches of its own.

It writes what it has seen to the file that OTHER_APPS_FILE names, a JSON object a line.
"""

import json
import os
from pathlib import Path

from eventlet.green import socket
from ryu.base.app_manager import RyuApp
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.ofproto import ofproto_v1_3

FOREIGN = {0xF1, 0xF2}


def seen(what, datapath, **more):
    with Path(os.environ["OTHER_APPS_FILE"]).open("a") as file:
        file.write(json.dumps({"what": what, "switch": datapath.id, **more}) + "\n")


class LearningSwitch(RyuApp):
    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ports = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def features(self, event):
        datapath = event.msg.datapath
        resolver = socket.getaddrinfo.__module__
        seen("features", datapath, tables=event.msg.n_tables, resolver=resolver)
        if datapath.id in FOREIGN:
            ofp, parser = datapath.ofproto, datapath.ofproto_parser
            action = parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)
            self.add(datapath, 0, parser.OFPMatch(), action)

    def add(self, datapath, priority, match, action):
        parser, ofp = datapath.ofproto_parser, datapath.ofproto
        apply = parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [action])
        datapath.send_msg(
            parser.OFPFlowMod(datapath, priority=priority, match=match, instructions=[apply])
        )

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        datapath, port = message.datapath, message.match["in_port"]
        if datapath.id not in FOREIGN:
            return
        target, source = message.data[:6], message.data[6:12]
        self.ports[datapath.id, source] = port
        seen("packet", datapath, port=port)
        if out := self.ports.get((datapath.id, target)):
            parser = datapath.ofproto_parser
            match = parser.OFPMatch(eth_dst=":".join(f"{byte:02x}" for byte in target))
            self.add(datapath, 1, match, parser.OFPActionOutput(out))
