"""
Accounting: fills the tables of all projections, and answers from them.

Owns      nothing in the log; the PostgreSQL schemas of the projections: jobs, machines, negotiation
Consumes  the frames of every shard `schedd.*`, `collector*`, `negotiator*`, also of further databases
Answers   query_history, query_usage, report_usage (everybody)
"""
