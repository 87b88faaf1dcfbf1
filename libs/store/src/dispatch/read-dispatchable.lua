-- Reads what a batch-former decides on.
-- ARGV: 1 max workers of each list, 2 max requests
-- Returns: as `readDispatchable`
--- @include "dispatchable"
return readDispatchable(tonumber(ARGV[1]), tonumber(ARGV[2]))
