"""Jobs of several tasks: what their ad says of them, what is done next, and what is unpacked for them."""
