/* A collective over N hosts in SimGrid, as an MPI program would: the seconds until it has ended, and the
   messages sent.
   collectives PLATFORM HOSTFILE WHICH BYTES; BYTES are those of each message. */
#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <simgrid/engine.h>
#include <simgrid/s4u/Actor.hpp>
#include <simgrid/s4u/Comm.hpp>
#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Semaphore.hpp>
#include <vector>

namespace s4u = simgrid::s4u;
using Program = std::function<void(int)>;

static std::vector<s4u::Host *> host;
static std::map<std::pair<int, int>, s4u::SemaphorePtr> came;
static double bytes;
static int hosts, sends;

static s4u::SemaphorePtr messages(int from, int to)
{
  auto &here = came[{from, to}];
  return here ? here : here = s4u::Semaphore::create(0);
}

static void send(int from, int to)
{
  sends++;
  s4u::Comm::sendto(host[from], host[to], bytes);
  messages(from, to)->release();
}

static void receive(int from, int to) { messages(from, to)->acquire(); }

static void ring(int own)
{
  for (int step = 0; step < 2 * (hosts - 1); step++) {
    send(own, (own + 1) % hosts);
    receive((own + hosts - 1) % hosts, own);
  }
}

static void tree(int own)
{
  int above = (own - 1) / 2, first = 2 * own + 1, end = std::min(first + 2, hosts);
  for (int below = first; below < end; below++)
    receive(below, own);
  if (own) {
    send(own, above);
    receive(above, own);
  }
  for (int below = first; below < end; below++)
    send(own, below);
}

static void all_to_all(int own)
{
  std::vector<s4u::CommPtr> sent;
  for (int k = 1; k < hosts; k++)
    sent.push_back(s4u::Comm::sendto_async(host[own], host[(own + k) % hosts], bytes));
  sends += sent.size();
  for (auto &each : sent)
    each->wait();
}

static void sweep(int own)
{
  int rows = 1;
  for (int r = 2; r * r <= hosts; r++)
    rows = hosts % r ? rows : r;
  int columns = hosts / rows, row = own / columns, column = own % columns;
  auto with = [=](int r, int c, const Program &act) {
    if (r >= 0 && r < rows && c >= 0 && c < columns)
      act(r * columns + c);
  };
  auto from = [=](int other) { receive(other, own); };
  auto to = [=](int other) { send(own, other); };
  for (int down : {1, -1})
    for (int right : {1, -1})
      for (int block = 0; block < 10; block++) {
        with(row - down, column, from);
        with(row, column - right, from);
        with(row + down, column, to);
        with(row, column + right, to);
      }
}

int main(int argc, char *argv[])
{
  simgrid_init(&argc, argv);
  simgrid_load_platform(argv[1]);
  std::ifstream names(argv[2]);
  for (std::string name; names >> name; hosts++)
    host.push_back(s4u::Host::by_name(name));
  std::map<std::string, Program> programs{{"ring-allreduce", ring},
                                          {"tree-allreduce", tree},
                                          {"all-to-all", all_to_all},
                                          {"sweep3d", sweep}};
  bytes = std::stod(argv[4]);
  for (int own = 0; own < hosts; own++)
    s4u::Actor::create("rank", host[own], programs.at(argv[3]), own);
  simgrid_run();
  std::cout << simgrid_get_clock() << " " << sends << "\n";
}
