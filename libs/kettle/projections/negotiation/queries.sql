-- The statements that fill the tables, by name. The first argument is the shard.

-- name: cycle
-- Keep cycles.
INSERT INTO cycle (shard, cycle, at, started, duration, slots, idle, matched, rejected)
SELECT $1, c.* FROM unnest($2::bigint[], $3::timestamptz[], $4::double precision[], $5::double precision[],
                           $6::integer[], $7::integer[], $8::integer[], $9::integer[]) AS c;

-- name: match
-- Keep what they gave.
INSERT INTO match (shard, cycle, number, submitter, schedd, autocluster, slot, startd, count)
SELECT $1, m.* FROM unnest($2::bigint[], $3::integer[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[],
                           $9::integer[]) AS m;

-- name: reject
-- Keep what they refused.
INSERT INTO rejection (shard, cycle, number, submitter, schedd, autocluster, count, reason, slots, clauses)
SELECT $1, r.cycle, r.number, r.submitter, r.schedd, r.autocluster, r.count, r.reason, r.slots, r.clauses::jsonb
  FROM unnest($2::bigint[], $3::integer[], $4::text[], $5::text[], $6::bigint[], $7::integer[], $8::text[],
              $9::integer[], $10::text[])
    AS r (cycle, number, submitter, schedd, autocluster, count, reason, slots, clauses);

-- name: forget
-- Drop the cycles that were recorded before a day, and what belongs to them.
WITH old AS (
    DELETE FROM cycle WHERE shard = $1 AND at < $2 RETURNING cycle
), matches AS (
    DELETE FROM match m USING old WHERE m.shard = $1 AND m.cycle = old.cycle
)
DELETE FROM rejection r USING old WHERE r.shard = $1 AND r.cycle = old.cycle;
