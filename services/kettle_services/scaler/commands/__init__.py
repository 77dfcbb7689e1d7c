"""Commands of people about pools of workers and their leases."""
