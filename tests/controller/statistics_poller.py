"""A Ryu app of somebody else: it asks every switch for its rows, and hears of ports."""

from ryu.base.app_manager import RyuApp
from ryu.controller import ofp_event
from ryu.controller.handler import MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3

from tests.controller.learning_switch import seen


class Poller(RyuApp):
    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def start(self):
        super().start()
        self.datapaths = {}
        self.threads.append(hub.spawn(self.poll))

    @set_ev_cls(ofp_event.EventOFPStateChange, MAIN_DISPATCHER)
    def state(self, event):
        self.datapaths[event.datapath.id] = event.datapath

    def poll(self):
        while True:
            for datapath in list(self.datapaths.values()):
                parser = datapath.ofproto_parser
                datapath.send_msg(parser.OFPFlowStatsRequest(datapath))
            hub.sleep(0.2)

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def statistics(self, event):
        seen("rows", event.msg.datapath, rows=len(event.msg.body))

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def port(self, event):
        seen("port", event.msg.datapath, port=event.msg.desc.port_no)
