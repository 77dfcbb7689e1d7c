"""What a state machine was fed, line by line in a file: to find out later why it went as it did."""
