"""`kettle upgrade`: whether a pool can be upgraded now, and what is left to do when every host is new."""
