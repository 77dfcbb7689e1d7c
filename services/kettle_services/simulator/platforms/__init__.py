"""What a simulated pool consists of: hosts, and the network between them."""
