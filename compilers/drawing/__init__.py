"""Pictures of fabrics: where everything stands is computed here, templates print it."""
