"""A host that sends datagrams to all others and prints which arrive, for live_bgp.py.

live_talker.py NUMBER JSON: which host this is, and the addresses of every host. Imports little:
one runs for every host.
"""

import json
import selectors
import socket
import sys
import time

PERIOD = 0.1
"""Seconds between two datagrams of a host to another."""
PORT = 7000


def talk(me, addresses):
    """A host: send to all, print every second what arrived since the start: [source, family, when].

    Times are those of the machine, so other hosts' and the test's can be compared.
    """
    selector = selectors.DefaultSelector()
    sockets = {}
    for family in (socket.AF_INET, socket.AF_INET6):
        sockets[family] = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            sockets[family].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sockets[family].bind(("", PORT))
        sockets[family].setblocking(False)
        selector.register(sockets[family], selectors.EVENT_READ)
    following, number, news = time.monotonic(), 0, []
    while True:
        for key, _ in selector.select(max(0.0, following - time.monotonic())):
            try:
                while True:
                    source, sent = map(int, key.fileobj.recv(64).split())
                    six = key.fileobj.family == socket.AF_INET6
                    news.append((source, int(six), sent))
            except OSError:
                pass
        if time.monotonic() < following:
            continue
        following += PERIOD
        number += 1
        for other, both in enumerate(addresses):
            for family, address in zip(sockets, both, strict=True):
                try:
                    if other != me:
                        text = f"{me} {time.monotonic_ns() // 1_000_000}".encode()
                        sockets[family].sendto(text, (address, PORT))
                except OSError:
                    pass
        if number % 3 == 0 and news:
            print(json.dumps(news), flush=True)
            news = []


if __name__ == "__main__":
    talk(int(sys.argv[1]), json.loads(sys.argv[2]))
