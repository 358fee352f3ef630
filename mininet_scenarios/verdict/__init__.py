"""What was seen beside what the tables predict, and the reports of it."""
