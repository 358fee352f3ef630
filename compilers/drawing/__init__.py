"""Pictures of fabrics: positions are computed here, templates print them."""
