"""The Linux kernel: its class, names of ports, what its devices print, and how it is pushed."""
