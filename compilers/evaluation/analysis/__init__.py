"""What a built graph is worth: distances, paths, load, bisection, resilience, growth."""
