"""
What a job finds when it starts: its ad, its arguments and environment variables, and the helper programs beside it.
"""
