"""
What services ask of each other and people ask of services: imperatives, one module per role that answers.
"""
