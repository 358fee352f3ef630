"""Work in shards: on this machine's cores, or on the workers of a cluster."""
