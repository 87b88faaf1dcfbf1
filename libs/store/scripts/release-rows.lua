-- Gives rows of a lease back before its request ends: a row in its last step can be promised to somebody else.
-- KEYS: 1 base   ARGV: 1 worker id, 2 id, 3 token, 4 rows or 'all', 5 now ms
-- Returns: rows released; 0 when the lease is not there any more
local base = KEYS[1]
--- @include "keys"
--- @include "worker-pool"
return releaseLease(ARGV[1], ARGV[2], ARGV[3], ARGV[4] == 'all' and 'all' or tonumber(ARGV[4]), tonumber(ARGV[5]))
