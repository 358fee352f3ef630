"""Targets that route IP: Linux kernels, FRR, SONiC, SRv6 and network systems."""
