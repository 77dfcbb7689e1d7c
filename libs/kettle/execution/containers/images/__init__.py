"""Images of containers: where they come from, how they are unpacked, and where they are kept."""
