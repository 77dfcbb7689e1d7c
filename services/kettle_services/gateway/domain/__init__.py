"""What a recorded event looks like to everybody, and how much of what goes together: pure."""
