"""`kettle backup`: what the settings of a host say about its backups, and how their outcome is printed."""
