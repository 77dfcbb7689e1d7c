"""
What is written for people: text that does nothing to their terminal but be seen, and what they may have meant.
"""
