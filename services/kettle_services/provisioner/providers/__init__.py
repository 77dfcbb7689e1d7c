"""The providers, one module each, which is imported only where a provider of its kind is set up."""
