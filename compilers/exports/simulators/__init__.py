"""Files for network simulators: the fabric with its rates, and the ways of the emitted tables."""
