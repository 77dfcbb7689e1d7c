"""Results of simulations as drawings: SVG without script, made from columns."""
