"""`kettle tasks`: many small commands, which a few jobs work through."""
