"""One engine for the text of all systems, and the grammars that it reads."""
