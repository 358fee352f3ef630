"""InfiniBand: forwarding tables for OpenSM."""
