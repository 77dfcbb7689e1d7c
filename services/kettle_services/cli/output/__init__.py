"""
How anything gets out: the screen, quantities as people read them, progress bars, plots, and files for other programs.
"""
