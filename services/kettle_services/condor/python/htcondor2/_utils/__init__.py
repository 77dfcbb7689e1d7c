"""What the `htcondor` command uses besides the classes of `htcondor2`; names only."""
