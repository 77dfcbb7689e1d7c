"""
One module per command, or per family of commands; it is imported when its command runs.

Each has `HELP`, a text by the name of a command, and `run(name, words) -> exit status`.
"""
