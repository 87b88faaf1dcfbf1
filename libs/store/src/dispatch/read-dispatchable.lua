-- What a former decides on.
-- ARGV: 1 the most workers of each kind, 2 the most requests, 3 how many of them beyond those that find room
-- Returns: as `lookAround`
--- @include "dispatchable"
return lookAround(tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]))
