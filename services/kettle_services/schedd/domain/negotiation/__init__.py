"""Pure rules of what is asked of pools: autoclusters, concurrency limits and flocking levels."""
