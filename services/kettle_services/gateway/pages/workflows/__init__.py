"""The pages of workflows: all that there are, and one, with its graph, its nodes and its time line."""
