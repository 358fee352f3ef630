"""BookSim 2 as the judge of our simulator."""
