"""Work in threads that outlasts nobody who waits for it."""
