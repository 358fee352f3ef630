"""The verbs, a module each; imported by `polarfab.cli` when called."""
