// A fabric in ns-3 (3.37 or later): hosts, links with their rates, and switches that forward by the
// tables of fabric.txt, where packets of hosts choose between next hops by their flow and the weights.
//
//   g++ -std=c++17 -O2 fabric.cc -o fabric -lns3-internet -lns3-point-to-point -lns3-network -lns3-core
//   ./fabric --flows=flows.txt            lines of SOURCE DESTINATION BYTES, hosts by name
//
// Every flow is UDP; a host sends a packet of each of its flows in turn, at the rate of its link.
// Queues have no end, so nothing is lost. Other applications go where main() sends the flows.

#include <ns3/command-line.h>
#include <ns3/data-rate.h>
#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-l3-protocol.h>
#include <ns3/ipv4-route.h>
#include <ns3/ipv4-routing-helper.h>
#include <ns3/ipv4-static-routing-helper.h>
#include <ns3/node-container.h>
#include <ns3/point-to-point-helper.h>
#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/tag.h>
#include <ns3/udp-header.h>
#include <ns3/udp-socket-factory.h>
#include <ns3/uinteger.h>

#include <deque>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

using namespace ns3;

const uint32_t MTU = 1500, HEADERS = 28, FRAMING = 2; // bytes: IPv4 and UDP, PPP
const uint16_t PORT = 9;

struct Link { uint32_t from, to; double rate, delay; };
struct Host { std::string name; uint32_t at; double rate; Ipv4Address address; };
struct Share { uint32_t next, weight; };
struct Class { uint32_t next = 0, back = 0; std::vector<Share> shares; std::map<uint32_t, uint32_t> from; };

// fabric.txt; its head explains the lines.
struct Fabric
{
  uint32_t switches = 0;
  std::vector<Link> links;
  std::vector<Host> hosts;
  std::vector<std::vector<Class>> classes;  // [switch][class]
  std::vector<std::vector<int>> routes;     // [destination][switch]
  std::map<Ipv4Address, uint32_t> host_at;  // the number of a host
  bool shared = false, marks = false;
  std::vector<uint32_t> vias;
  std::set<int> unmarked;
  std::vector<int> side;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Share>> spread;  // by switch and where from

  explicit Fabric(const std::string& file)
  {
    std::ifstream in(file);
    NS_ABORT_MSG_UNLESS(in, "cannot read " << file);
    for (std::string line, word; std::getline(in, line);)
    {
      std::istringstream words(line);
      words >> word;
      if (word == "switches")
      {
        words >> switches;
        classes.resize(switches);
        routes.resize(switches);
      }
      else if (word == "link")
      {
        Link link;
        words >> link.from >> link.to >> link.rate >> link.delay;
        links.push_back(link);
      }
      else if (word == "host")
      {
        Host host;
        std::string address;
        words >> host.name >> host.at >> host.rate >> address;
        host.address = Ipv4Address(address.c_str());
        host_at[host.address] = hosts.size();
        hosts.push_back(host);
      }
      else if (word == "class")
      {
        uint32_t at, number;
        Class one;
        words >> at >> number >> one.next >> one.back;
        for (Share share; words >> share.next >> share.weight;)
          one.shares.push_back(share);
        classes[at].resize(std::max<size_t>(classes[at].size(), number + 1));
        classes[at][number] = one;
      }
      else if (word == "shared")
        shared = true;
      else if (word == "back")
      {
        uint32_t at, number, from, next;
        words >> at >> number >> from >> next;
        classes[at][number].from[from] = next;
      }
      else if (word == "via")
        for (uint32_t number; words >> number;)
          vias.push_back(number);
      else if (word == "marks")
        marks = true;
      else if (word == "unmarked")
        for (int number; words >> number;)
          unmarked.insert(number);
      else if (word == "side")
        for (int number; words >> number;)
          side.push_back(number);
      else if (word == "spread")
      {
        uint32_t at, from;
        words >> at >> from;
        for (uint32_t next; words >> next;)
          spread[{at, from}].push_back({next, 1});
      }
      else if (word == "route")
      {
        uint32_t to;
        words >> to;
        for (int number; words >> number;)
          routes[to].push_back(number);
      }
    }
  }
};

// What a packet carries: the switch that it goes to first, or a mark.
class Carried : public Tag
{
public:
  static const uint32_t NONE = ~0u, MARK = ~1u;
  uint32_t value = NONE;

  static TypeId GetTypeId()
  {
    static TypeId id = TypeId("Carried").SetParent<Tag>().AddConstructor<Carried>();
    return id;
  }
  TypeId GetInstanceTypeId() const override { return GetTypeId(); }
  uint32_t GetSerializedSize() const override { return 4; }
  void Serialize(TagBuffer i) const override { i.WriteU32(value); }
  void Deserialize(TagBuffer i) override { value = i.ReadU32(); }
  void Print(std::ostream& os) const override { os << value; }
};

// What a switch does with a packet: the rule of fabric.txt.
class TableRouting : public Ipv4RoutingProtocol
{
public:
  TableRouting(const Fabric& fabric, uint32_t number) : m_fabric(fabric), m_number(number) {}

  void ToSwitch(uint32_t number, uint32_t interface) { m_switch[number] = interface; m_from[interface] = number; }
  void ToHost(uint32_t number, uint32_t interface) { m_host[number] = interface; }

  Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header&, Ptr<NetDevice>, Socket::SocketErrno& error) override
  {
    error = Socket::ERROR_NOROUTETOHOST; // switches send nothing of their own
    return nullptr;
  }

  // ns-3 from 3.38 on, and before it.
  bool RouteInput(Ptr<const Packet> packet, const Ipv4Header& header, Ptr<const NetDevice> device,
                  const UnicastForwardCallback& forward, const MulticastForwardCallback&,
                  const LocalDeliverCallback&, const ErrorCallback&)
  {
    return Forward(packet, header, device, forward);
  }
  bool RouteInput(Ptr<const Packet> packet, const Ipv4Header& header, Ptr<const NetDevice> device,
                  UnicastForwardCallback forward, MulticastForwardCallback, LocalDeliverCallback, ErrorCallback)
  {
    return Forward(packet, header, device, forward);
  }

  void NotifyInterfaceUp(uint32_t) override {}
  void NotifyInterfaceDown(uint32_t) override {}
  void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
  void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
  void SetIpv4(Ptr<Ipv4> ipv4) override { m_ipv4 = ipv4; }
  void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}

private:
  bool Forward(Ptr<const Packet> packet, const Ipv4Header& header, Ptr<const NetDevice> device,
               const UnicastForwardCallback& forward)
  {
    auto found = m_fabric.host_at.find(header.GetDestination());
    if (found == m_fabric.host_at.end())
      return false;
    uint32_t to = m_fabric.hosts[found->second].at, interface;
    auto from = m_from.find(m_ipv4->GetInterfaceForDevice(device));
    bool host = from == m_from.end();
    Carried carried;
    packet->PeekPacketTag(carried);
    const uint32_t came_with = carried.value;
    if (host && to != m_number && !m_fabric.vias.empty())
      carried.value = m_fabric.vias[Flow(packet, header, DRAW) % m_fabric.vias.size()];
    if (carried.value == m_number)
    {
      carried.value = Carried::NONE; // from here on it is one from a host
      host = true;
    }
    bool over = carried.value < Carried::MARK;
    if (to == m_number && !over)
      interface = m_host.at(found->second);
    else
    {
      int number = m_fabric.routes[over ? carried.value : to][m_number];
      if (number < 0)
        return false;
      const Class& one = m_fabric.classes[m_number][number];
      auto back = host ? one.from.end() : one.from.find(from->second);
      uint32_t next = one.next;
      if (carried.value == Carried::MARK && !m_fabric.unmarked.count(number))
      {
        next = Chosen(m_fabric.spread.at({m_number, from->second}), next, Flow(packet, header, 1 + m_number));
        if (m_fabric.side[m_number] < 0 || m_fabric.side[m_number] != m_fabric.side[to])
          carried.value = Carried::NONE;
      }
      else
      {
        if (carried.value == Carried::MARK)
          carried.value = Carried::NONE;
        if (host)
        {
          next = Chosen(one.shares, next, Flow(packet, header, 0));
          if (m_fabric.marks && !one.shares.empty() && (next != one.next || m_fabric.side[m_number] >= 0))
            carried.value = Carried::MARK;
        }
        else if (from->second == next)
          next = one.back;
        else if (back != one.from.end())
          next = back->second;
        else if (m_fabric.shared)
          next = Chosen(one.shares, next, Flow(packet, header, 1 + m_number));
      }
      interface = m_switch.at(next);
    }
    if (carried.value != came_with)
    {
      Ptr<Packet> changed = packet->Copy();
      if (carried.value == Carried::NONE)
        changed->RemovePacketTag(carried);
      else
        changed->ReplacePacketTag(carried);
      packet = changed;
    }
    Ptr<Ipv4Route> route = Create<Ipv4Route>();
    route->SetDestination(header.GetDestination());
    route->SetSource(header.GetSource());
    route->SetGateway(Ipv4Address::GetAny());
    route->SetOutputDevice(m_ipv4->GetNetDevice(interface));
    forward(route, packet, header);
    return true;
  }

  static const uint32_t DRAW = ~0u;

  // A hash of the flow, for a draw.
  static uint64_t Flow(Ptr<const Packet> packet, const Ipv4Header& header, uint32_t draw)
  {
    UdpHeader ports; // TCP has its ports in the same place
    packet->PeekHeader(ports);
    uint64_t flow = (uint64_t(header.GetSource().Get()) << 32 | header.GetDestination().Get()) * 0x9E3779B97F4A7C15ull;
    flow ^= uint64_t(ports.GetSourcePort()) << 16 | ports.GetDestinationPort();
    flow += draw * 0x9E3779B97F4A7C15ull;
    flow = (flow ^ flow >> 30) * 0xBF58476D1CE4E5B9ull;
    flow = (flow ^ flow >> 27) * 0x94D049BB133111EBull;
    return flow ^ flow >> 31;
  }

  static uint32_t Chosen(const std::vector<Share>& shares, uint32_t otherwise, uint64_t flow)
  {
    uint32_t sum = 0;
    for (const Share& share : shares)
      sum += share.weight;
    if (!sum)
      return otherwise;
    uint32_t left = flow % sum;
    for (const Share& share : shares)
    {
      if (left < share.weight)
        return share.next;
      left -= share.weight;
    }
    return otherwise;
  }

  const Fabric& m_fabric;
  uint32_t m_number;
  Ptr<Ipv4> m_ipv4;
  std::map<uint32_t, uint32_t> m_switch, m_from, m_host; // interfaces by switch and back, by host
};

class TableRoutingHelper : public Ipv4RoutingHelper
{
public:
  explicit TableRoutingHelper(const Fabric& fabric) : m_fabric(fabric) {}
  TableRoutingHelper* Copy() const override { return new TableRoutingHelper(*this); }
  Ptr<Ipv4RoutingProtocol> Create(Ptr<Node> node) const override
  {
    return CreateObject<TableRouting>(m_fabric, node->GetId()); // switches are the first nodes
  }

private:
  const Fabric& m_fabric;
};

// An interface for a device, without an address unless one is given.
uint32_t Interface(Ptr<NetDevice> device, Ipv4Address address = Ipv4Address::GetAny())
{
  Ptr<Ipv4> ipv4 = device->GetNode()->GetObject<Ipv4>();
  uint32_t number = ipv4->AddInterface(device);
  if (address != Ipv4Address::GetAny())
    ipv4->AddAddress(number, Ipv4InterfaceAddress(address, Ipv4Mask::GetOnes()));
  ipv4->SetUp(number);
  return number;
}

// Switch v is node v; host h is node switches + h.
NodeContainer Build(const Fabric& fabric)
{
  NodeContainer switches, hosts;
  switches.Create(fabric.switches);
  hosts.Create(fabric.hosts.size());
  InternetStackHelper stack;
  stack.SetIpv6StackInstall(false);
  stack.Install(hosts);
  stack.SetRoutingHelper(TableRoutingHelper(fabric));
  stack.Install(switches);

  auto table = [&](uint32_t number) { return DynamicCast<TableRouting>(switches.Get(number)->GetObject<Ipv4>()->GetRoutingProtocol()); };
  auto cable = [](Ptr<Node> one, Ptr<Node> other, double rate, double delay) {
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate * 1e9))));
    link.SetDeviceAttribute("Mtu", UintegerValue(MTU));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(delay)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("4000000000p"));
    return link.Install(one, other);
  };
  for (const Link& link : fabric.links)
  {
    NetDeviceContainer ends = cable(switches.Get(link.from), switches.Get(link.to), link.rate, link.delay);
    table(link.from)->ToSwitch(link.to, Interface(ends.Get(0)));
    table(link.to)->ToSwitch(link.from, Interface(ends.Get(1)));
  }
  double delay = fabric.links.empty() ? 0 : fabric.links[0].delay;
  Ipv4StaticRoutingHelper routing;
  for (uint32_t h = 0; h < fabric.hosts.size(); ++h)
  {
    const Host& host = fabric.hosts[h];
    NetDeviceContainer ends = cable(hosts.Get(h), switches.Get(host.at), host.rate, delay);
    uint32_t interface = Interface(ends.Get(0), host.address);
    routing.GetStaticRouting(hosts.Get(h)->GetObject<Ipv4>())->SetDefaultRoute(Ipv4Address::GetZero(), interface);
    table(host.at)->ToHost(h, Interface(ends.Get(1)));
  }
  return hosts;
}

// The flows of a host: a packet of each in turn, at the rate of its link.
struct Sender
{
  struct Flow { Ptr<Socket> socket; uint64_t left; };
  std::deque<Flow> flows;
  double rate;

  void Send()
  {
    Flow flow = flows.front();
    flows.pop_front();
    uint32_t size = std::min<uint64_t>(flow.left, MTU - HEADERS);
    flow.socket->Send(Create<Packet>(size));
    flow.left -= size;
    if (flow.left)
      flows.push_back(flow);
    if (!flows.empty())
      Simulator::Schedule(Seconds((size + HEADERS + FRAMING) * 8 / rate), &Sender::Send, this);
  }
};

int main(int argc, char* argv[])
{
  std::string file = "fabric.txt", flows = "flows.txt";
  CommandLine words(__FILE__);
  words.AddValue("fabric", "links, hosts and tables", file);
  words.AddValue("flows", "lines of SOURCE DESTINATION BYTES", flows);
  words.Parse(argc, argv);

  Fabric fabric(file);
  NodeContainer hosts = Build(fabric);
  std::map<std::string, uint32_t> number;
  for (uint32_t h = 0; h < fabric.hosts.size(); ++h)
    number[fabric.hosts[h].name] = h;

  uint64_t sent = 0, received = 0;
  Time last;
  for (uint32_t h = 0; h < hosts.GetN(); ++h)
  {
    Ptr<Socket> sink = Socket::CreateSocket(hosts.Get(h), UdpSocketFactory::GetTypeId());
    sink->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
    sink->SetRecvCallback([&](Ptr<Socket> socket) {
      while (Ptr<Packet> packet = socket->Recv())
        received += packet->GetSize();
      last = Simulator::Now();
    });
  }
  std::vector<Sender> senders(hosts.GetN());
  std::ifstream in(flows);
  NS_ABORT_MSG_UNLESS(in, "cannot read " << flows);
  std::string source, destination;
  for (uint64_t bytes; in >> source >> destination >> bytes; sent += bytes)
  {
    uint32_t from = number.at(source), to = number.at(destination);
    Ptr<Socket> socket = Socket::CreateSocket(hosts.Get(from), UdpSocketFactory::GetTypeId());
    socket->Bind();
    socket->Connect(InetSocketAddress(fabric.hosts[to].address, PORT));
    senders[from].flows.push_back({socket, bytes});
    senders[from].rate = fabric.hosts[from].rate * 1e9;
  }
  for (Sender& sender : senders)
    if (!sender.flows.empty())
      Simulator::ScheduleNow(&Sender::Send, &sender);
  Simulator::Run();
  std::cout << "seconds " << last.GetSeconds() << " bytes " << received << " lost " << sent - received << std::endl;
  Simulator::Destroy();
  return received != sent;
}
