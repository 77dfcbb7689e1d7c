"""The answers about claims: who gets one, what may be activated on it, and who has to make room."""
