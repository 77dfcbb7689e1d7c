-- Whoever looks for the most frequent types.
CREATE INDEX tally_count ON tally (count);
