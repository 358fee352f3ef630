"""fabric.yaml as values: what to build, how to address it, how to route it."""
