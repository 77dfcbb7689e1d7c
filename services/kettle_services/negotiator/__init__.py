"""
The negotiator: matches submitters' demand with the machines' offers, in cycles, and records why.

Owns      the shard `negotiator`: streams `cycle/<n>` and `principal/<submitter>`
Watches   the ads of slots and submitters, and the private ads with the slots' capabilities
Publishes its frames on `evt.negotiator`; the ad `Negotiator.<name>`
Answers   why, query_priorities; of administrators: set_principal, reset_usage, delete_principal
Asks      schedds: matched
"""
