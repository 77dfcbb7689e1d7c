"""What happens to slots without a command for them: policy evaluation, draining and backfill."""
