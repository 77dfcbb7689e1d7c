"""The parts of `kettle ce`: route files checked, tried and converted, and an entrypoint asked."""
