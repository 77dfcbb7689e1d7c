"""All output: the screen, quantities for people, progress bars, plots, and files for other programs."""
