"""
What this startd says to and asks of access points: reports to schedds until they are confirmed, and questions to shadows.
"""
