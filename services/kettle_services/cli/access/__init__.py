"""Who may do what, tried out: the files and lists of the site, and what they make of a credential."""
