"""Which fabrics can be built, and what each gives and costs, from formulas alone."""
