"""The emulating machine: resources, namespaces, processes, run records."""
