"""What was typed: HTCondor's grammar of options, and which jobs or machines are meant."""
