"""What schedds, shadows, administrators and users ask of this startd over the bus, and who may ask it."""
