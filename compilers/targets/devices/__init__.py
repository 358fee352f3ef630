"""What systems share that a push configures line by line."""
