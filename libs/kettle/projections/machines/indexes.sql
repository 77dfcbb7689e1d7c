-- What only readers need.

CREATE INDEX passage_machine ON passage (machine, at);
CREATE INDEX passage_at ON passage (at);
