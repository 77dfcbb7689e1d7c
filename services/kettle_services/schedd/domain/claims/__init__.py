"""Pure rules of claims: their leases, when leases are renewed, and which job reuses a claim."""
