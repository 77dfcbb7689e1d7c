"""Messages to startds and to the schedd, batched and repeated until they are answered."""
