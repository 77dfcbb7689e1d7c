"""
A simulated pool at a moment of its life, as its events tell: it answers what people ask about jobs and priorities.
"""
