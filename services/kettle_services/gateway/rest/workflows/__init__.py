"""What is asked about workflows over HTTP, and what is done to them."""
