-- What only readers need.

CREATE INDEX cycle_at ON cycle (at DESC);
CREATE INDEX match_submitter ON match (submitter, cycle DESC);
CREATE INDEX match_slot ON match (startd, slot, cycle DESC);
CREATE INDEX rejection_submitter ON rejection (submitter, cycle DESC);
