"""The manual as a site: what is made from the code while `make docs` builds it."""
