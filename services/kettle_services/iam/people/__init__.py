"""People who come onto the bus with a token: who they are, which connections they have, and how those end."""
