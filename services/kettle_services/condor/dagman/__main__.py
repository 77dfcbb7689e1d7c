"""The same program as the command condor_dagman, for DAG jobs that a service submits."""

from kettle_services.condor.start import command

command("condor_dagman")
