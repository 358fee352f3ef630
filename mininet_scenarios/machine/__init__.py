"""The machine that emulates: what it has, namespaces, processes, what a run leaves."""
