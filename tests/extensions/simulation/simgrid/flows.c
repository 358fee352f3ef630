/* All flows of a file in SimGrid at once: the seconds until the last has arrived.
   flows PLATFORM FLOWS; a flow is a line, SOURCE DESTINATION BYTES. */
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/mailbox.h>
#include <stdio.h>
#include <stdlib.h>

static void put(int argc, char *argv[])
{
  sg_mailbox_put(sg_mailbox_by_name(argv[1]), argv, atof(argv[2]));
}

static void get(int argc, char *argv[])
{
  sg_mailbox_get(sg_mailbox_by_name(argv[1]));
}

int main(int argc, char *argv[])
{
  char flow[] = "flow", from[64], to[64], bytes[32], name[16];
  simgrid_init(&argc, argv);
  simgrid_load_platform(argv[1]);
  FILE *flows = fopen(argv[2], "r");
  for (int i = 0; fscanf(flows, "%63s %63s %31s", from, to, bytes) == 3; i++) {
    snprintf(name, sizeof name, "%d", i);
    char *words[] = {flow, name, bytes};
    sg_actor_create(name, sg_host_by_name(from), put, 3, words);
    sg_actor_create(name, sg_host_by_name(to), get, 3, words);
  }
  simgrid_run();
  printf("%.9g\n", simgrid_get_clock());
  return 0;
}
