"""The bus: its port, NATS behind it, memory behind it, leases on top of it."""
