"""Tables of the file of a simulation, and what each describes."""
