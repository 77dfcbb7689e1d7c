-- Every statement that the log sends, by name. A query ends where the next begins.

-- name: shard
-- The present owner and head of one shard.
SELECT id, name, epoch, head, frame, owner FROM log.shard WHERE name = $1;

-- name: shards
-- All shards, by name.
SELECT id, name, epoch, head, frame, owner FROM log.shard ORDER BY name;

-- name: raise_epoch
-- Become the owner of a shard that exists.
UPDATE log.shard SET epoch = epoch + 1, owner = $2 WHERE name = $1
RETURNING id, name, epoch, head, frame, owner;

-- name: make_shard
-- Become the first owner of a shard; no row: somebody else made it meanwhile.
INSERT INTO log.shard (name, kind, epoch, owner) VALUES ($1, substring($1 FROM '^[[:alpha:]]*'), 1, $2)
ON CONFLICT (name) DO NOTHING
RETURNING id, name, epoch, head, frame, owner;

-- name: fence_working_set
-- From now on only the new owner moves the working set's cursor; waits for a save that is under way.
INSERT INTO log.projection (name, version, shard, epoch) VALUES ('working_set', $3, $1, $2)
ON CONFLICT (name, version, shard) DO UPDATE SET epoch = excluded.epoch;

-- name: make_piece
-- Make the table for a range of positions; does nothing if it is there.
SELECT log.make_piece($1, $2);

-- name: append
-- One frame and the answers decided with it, if epoch, frame and head are what the owner thinks. Returns 1 or 0.
WITH owned AS (
    UPDATE log.shard SET frame = $3, head = $4::bigint + cardinality($6::text[]) - 1
     WHERE id = $1 AND epoch = $2 AND frame = $3::bigint - 1 AND head = $4::bigint - 1
 RETURNING id
), events AS (
    INSERT INTO log.event (shard, frame, pos, epoch, ver, at, stream, type, data, meta)
    SELECT owned.id, $3, $4::bigint + e.i - 1, $2, e.ver, $5, e.stream, e.type, e.data, e.meta
      FROM owned, unnest($6::text[], $7::integer[], $8::text[], $9::bytea[], $10::bytea[])
           WITH ORDINALITY AS e (stream, ver, type, data, meta, i)
), answers AS (
    INSERT INTO log.command (shard, id, frame, at, reply)
    SELECT owned.id, a.id, $3, $5, a.reply
      FROM owned, unnest($11::text[], $12::bytea[]) AS a (id, reply)
        ON CONFLICT (shard, id) DO NOTHING
)
SELECT count(*) FROM owned;

-- name: answer
-- Answers of commands that changed nothing, under the guard of `append`. Returns 1 or 0.
WITH owned AS (
    SELECT id FROM log.shard WHERE id = $1 AND epoch = $2 AND frame = $3::bigint - 1 AND head = $4::bigint - 1
       FOR UPDATE
), answers AS (
    INSERT INTO log.command (shard, id, frame, at, reply)
    SELECT owned.id, a.id, $3::bigint - 1, $5, a.reply
      FROM owned, unnest($6::text[], $7::bytea[]) AS a (id, reply)
        ON CONFLICT (shard, id) DO NOTHING
)
SELECT count(*) FROM owned;

-- name: read
-- A page of events from a frame and position on, up to a frame.
SELECT frame, pos, epoch, ver, at, stream, type, data, meta FROM log.event
 WHERE shard = $1 AND (frame, pos) > ($2, $3) AND frame <= $4
 ORDER BY frame, pos LIMIT $5;

-- name: stream
-- All events of one stream.
SELECT frame, pos, epoch, ver, at, stream, type, data, meta FROM log.event
 WHERE shard = $1 AND stream = $2 ORDER BY ver;

-- name: answers
-- The newest answers, newest first.
SELECT id, frame, reply FROM log.command WHERE shard = $1 ORDER BY frame DESC, at DESC LIMIT $2;

-- name: forget_answers
-- Drop answers older than the frame of the one that is `$2` back from the newest.
DELETE FROM log.command WHERE shard = $1 AND frame < (
    SELECT frame FROM log.command WHERE shard = $1 ORDER BY frame DESC OFFSET $2 - 1 LIMIT 1
);

-- name: cursor
-- How far a projection has come in a shard.
SELECT p.frame FROM log.projection p JOIN log.shard s ON s.id = p.shard
 WHERE p.name = $1 AND p.version = $2 AND s.name = $3;

-- name: cursors
-- How far a projection has come in every shard that it has begun.
SELECT s.name, p.frame FROM log.projection p JOIN log.shard s ON s.id = p.shard
 WHERE p.name = $1 AND p.version = $2 ORDER BY s.name;

-- name: start_cursor
-- Begin a projection of a shard at frame 0; does nothing if it has begun.
INSERT INTO log.projection (name, version, shard) SELECT $1, $2, id FROM log.shard WHERE name = $3
ON CONFLICT (name, version, shard) DO NOTHING;

-- name: move_cursor
-- Move a projection's cursor if it is where the caller thinks. Returns a row or none.
UPDATE log.projection p SET frame = $5 FROM log.shard s
 WHERE s.name = $3 AND p.shard = s.id AND p.name = $1 AND p.version = $2 AND p.frame = $4
RETURNING p.frame;

-- name: working_set
-- All rows of a shard's working set.
SELECT w.stream, w.ver, w.state FROM log.working_set w JOIN log.shard s ON s.id = w.shard
 WHERE s.name = $1 ORDER BY w.stream;

-- name: save_working_set
-- Move the cursor and rewrite rows, if cursor and epoch are what the owner thinks. Returns 1 or 0.
WITH moved AS (
    UPDATE log.projection SET frame = $5
     WHERE name = 'working_set' AND version = $2 AND shard = $1 AND frame = $4 AND epoch = $3
 RETURNING shard
), put AS (
    INSERT INTO log.working_set AS w (shard, stream, ver, state)
    SELECT moved.shard, r.stream, r.ver, r.state
      FROM moved, unnest($6::text[], $7::integer[], $8::bytea[]) AS r (stream, ver, state)
        ON CONFLICT (shard, stream) DO UPDATE SET ver = excluded.ver, state = excluded.state
), dropped AS (
    DELETE FROM log.working_set w USING moved WHERE w.shard = moved.shard AND w.stream = ANY ($9::text[])
)
SELECT count(*) FROM moved;
