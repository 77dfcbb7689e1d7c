"""iam over HTTP: discovery, keys, tokens, and who somebody is."""
