"""
The startd: the policy of one machine, its slots and claims, and the starters of the jobs that run on it.

Owns      a local journal of claims and attempts; final reports and sandboxes until they are confirmed
Publishes worker reports on `work.<schedd>.<startd>`; the ads of its slots, public and private
Answers   request_claims, alive, release (schedds); activate, deactivate, confirm, fetch_output (shadows)
Asks      shadows: offer_input, fetch_input, answer; the pool's object store for pieces of input files
"""
