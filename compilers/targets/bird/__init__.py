"""BIRD on a Linux kernel: its class, and how its configuration is read back."""
