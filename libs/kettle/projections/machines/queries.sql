-- The statements that fill the tables, by name. The first argument is the shard.

-- name: pass
-- Machines came and left.
INSERT INTO passage (shard, pos, at, machine, came, reason)
SELECT $1, p.* FROM unnest($2::bigint[], $3::timestamptz[], $4::text[], $5::boolean[], $6::text[]) AS p;

-- name: join
-- Machines that are there, by the last time that each came among these frames.
INSERT INTO machine AS m (shard, machine, present, since, cpus, memory, joined)
SELECT $1, j.machine, true, j.at, j.cpus, j.memory, j.times
  FROM unnest($2::text[], $3::timestamptz[], $4::integer[], $5::bigint[], $6::integer[])
    AS j (machine, at, cpus, memory, times)
    ON CONFLICT (shard, machine) DO UPDATE SET present = true, since = excluded.since, cpus = excluded.cpus,
       memory = excluded.memory, joined = m.joined + excluded.joined, reason = NULL;

-- name: leave
-- Machines that are not there any more. One that never came is not noted.
UPDATE machine m SET present = false, since = l.at, reason = l.reason
  FROM unnest($2::text[], $3::timestamptz[], $4::text[]) AS l (machine, at, reason)
 WHERE m.shard = $1 AND m.machine = l.machine;
