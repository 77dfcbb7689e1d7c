"""The subcommands of `kettle simulate`."""
