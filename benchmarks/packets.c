/* Packets in SimGrid: host i of N sends one each to i + 1, i + 2, … i + ROUNDS, one after the other.
   Prints the seconds of the simulation, without reading the platform.
   packets PLATFORM HOSTFILE ROUNDS BYTES; cc -O2 packets.c -o packets -lsimgrid */
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/mailbox.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int hosts, rounds;
static double bytes;

static sg_mailbox_t of(int host)
{
  char name[16];
  snprintf(name, sizeof name, "%d", host);
  return sg_mailbox_by_name(name);
}

static void put(int argc, char *argv[])
{
  int own = atoi(argv[1]);
  for (int i = 1; i <= rounds; i++)
    sg_mailbox_put(of((own + i) % hosts), argv, bytes);
}

static void get(int argc, char *argv[])
{
  sg_mailbox_t own = of(atoi(argv[1]));
  for (int i = 1; i <= rounds; i++)
    sg_mailbox_get(own);
}

int main(int argc, char *argv[])
{
  char host[256], number[16];
  struct timespec before, after;
  simgrid_init(&argc, argv);
  simgrid_load_platform(argv[1]);
  rounds = atoi(argv[3]);
  bytes = atof(argv[4]);
  FILE *file = fopen(argv[2], "r");
  for (; fscanf(file, "%255s", host) == 1; hosts++) {
    snprintf(number, sizeof number, "%d", hosts);
    char *words[] = {"packets", number};
    sg_actor_create("put", sg_host_by_name(host), put, 2, words);
    sg_actor_create("get", sg_host_by_name(host), get, 2, words);
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  simgrid_run();
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  printf("%.9g\n", after.tv_sec - before.tv_sec + (after.tv_nsec - before.tv_nsec) * 1e-9);
  return 0;
}
