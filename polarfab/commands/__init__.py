"""The verbs, one module each; imported by `polarfab.cli` when called."""
