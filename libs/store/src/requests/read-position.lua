-- Reads the queue position of a request.
-- ARGV: 1 id, 2 owner
-- Returns: {position, possible 0|1, cost of the requests ahead} | {} (it is not queued any more)
--- @include "queue-position"
--- @include "served"
local shares = sharesOf(ARGV[2])
local position = positionOf(ARGV[1], ARGV[2], shares)
return position and { position, isServed() and 1 or 0, costAhead(position, shares) } or {}
