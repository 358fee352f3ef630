"""SimGrid as the judge of collectives and of `throughput`."""
