"""Plans: what waits for machines, which ones are made for it, and which ones go. Pure."""
