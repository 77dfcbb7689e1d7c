-- What accounting reads to answer, by name.

-- name: usage
-- What owners have used, over all queues; no owner named: all of them.
SELECT owner, sum(jobs_completed)::bigint AS jobs_completed, sum(attempts)::bigint AS attempts,
       sum(wall)::bigint AS wall, sum(slot_time)::bigint AS slot_time, sum(cpu)::bigint AS cpu
  FROM jobs.usage
 WHERE cardinality($1::text[]) = 0 OR owner = ANY ($1::text[])
 GROUP BY owner ORDER BY owner COLLATE "C";
