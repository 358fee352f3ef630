"""Traffic between hosts: echo requests, probes, flows."""
