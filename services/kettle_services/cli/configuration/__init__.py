"""
The configuration as a whole: checked before anything changes, shown with its origins, compared with what is in use.
"""
