"""Ads as rows of tables: jobs, batches of jobs, and the daemons of hosts."""
