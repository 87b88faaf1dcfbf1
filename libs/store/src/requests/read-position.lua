-- How long a request has yet to wait.
-- ARGV: 1 id, 2 owner
-- Returns: {position, possible 0|1, cost of the requests ahead} | {} (it does not wait any more)
--- @include "queue-position"
--- @include "served"
local shares = sharesOf(ARGV[2])
local position = positionOf(ARGV[1], ARGV[2], shares)
return position and { position, isServed() and 1 or 0, costAhead(position, shares) } or {}
