"""Hardware as it is: node types, ports, nodes; loaded and checked. Imports no other folder."""
