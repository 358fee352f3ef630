"""Connections of switches: sockets, TLS, limits, and what passes through them."""
