"""Runs condor_dagman, for DAG jobs that a service submits: they have this interpreter for a program."""

from kettle_services.condor.start import command

command("condor_dagman")
