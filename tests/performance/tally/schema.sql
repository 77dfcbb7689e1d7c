-- How many events of each type a shard has.
CREATE TABLE tally (
    shard text   NOT NULL,
    type  text   NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (shard, type)
);
