"""What a workflow does next, decided from what happened to it; no I/O, no clock."""
