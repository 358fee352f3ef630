"""Lossless priorities (PFC) of network systems, and the headroom that they need."""
