"""
A workflow that runs, as people look at it: its nodes with their attempts and why they wait, a picture of it, and a time line.

All of it is folded from the events of the workflow alone, and pure.
"""
