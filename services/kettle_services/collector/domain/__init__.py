"""What the collector decides, without I/O and without a clock."""
