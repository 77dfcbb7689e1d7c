-- What is done with projections as a whole, by name.

-- name: begin_alone
-- Whether this session is the only one that rebuilds a projection.
SELECT pg_try_advisory_lock(hashtextextended('kettle.rebuild.' || $1, 0));

-- name: end_alone
-- Others may rebuild it.
SELECT pg_advisory_unlock(hashtextextended('kettle.rebuild.' || $1, 0));

-- name: owner
-- To whom the tables of a projection belong, if that is somebody else whose rights we may use.
SELECT r.rolname::text FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner
 WHERE n.nspname = $1 AND r.rolname <> current_user AND pg_has_role(r.oid, 'MEMBER');

-- name: become
-- Act with the rights of a role, until that is reset: what is made belongs to it.
SELECT set_config('role', $1, false);

-- name: version
-- The version of a projection's tables.
SELECT version FROM log.projected WHERE name = $1;

-- name: followed
-- The shards that a projection's tables follow.
SELECT shard FROM log.projection WHERE name = $1 ORDER BY shard;

-- name: note_version
-- Say of which version the tables of a projection are.
INSERT INTO log.projected (name, version) VALUES ($1, $2);

-- name: forget_version
-- Take that back.
DELETE FROM log.projected WHERE name = $1;

-- name: forget_cursors
-- Take back how far they have come.
DELETE FROM log.projection WHERE name = $1;

-- name: hold_version
-- From now on no instance begins another shard.
SELECT FROM log.projected WHERE name = $1 FOR UPDATE;

-- name: hold_cursors
-- From now on no instance moves a cursor; waits for those that are being moved.
SELECT FROM log.projection WHERE name = $1 ORDER BY shard FOR UPDATE;

-- name: rename_version
-- The tables of one name are those of another now.
UPDATE log.projected SET name = $2 WHERE name = $1;

-- name: rename_cursors
-- The same for cursors.
UPDATE log.projection SET name = $2 WHERE name = $1;

-- name: has_schema
-- Whether there is such a schema.
SELECT to_regnamespace(quote_ident($1)) IS NOT NULL;

-- name: tables
-- Tables of a schema and the columns of their primary keys.
SELECT c.relname AS name, array_agg(a.attname::text ORDER BY array_position(i.indkey::int[], a.attnum::int)) AS key
  FROM pg_class c
  JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
 WHERE c.relnamespace = to_regnamespace(quote_ident($1)) AND c.relkind = 'r'
 GROUP BY c.relname ORDER BY c.relname;

-- name: search_path
-- Where names without a schema are looked for, until the transaction ends; what it was.
SELECT set_config('search_path', $1, true) FROM (SELECT) AS nothing;
