"""What answers of providers mean: pure, so that each mapping can be tested without its provider."""
