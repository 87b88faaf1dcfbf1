-- The end of a request, under the fence, and the end of its lease.
-- KEYS: 1 base   ARGV: 1 id, 2 token, 3 worker id, 4 state, 5 now ms, 6 error JSON or ''
-- Returns: 'finished' | 'lost' | 'ended' (it was ended by somebody else: a deadline; the lease is over all the same)
local base = KEYS[1]
--- @include "keys"
--- @include "emit-event"
--- @include "end-request"
--- @include "worker-pool"
--- @include "fence"
local id, token, nowMs = ARGV[1], ARGV[2], tonumber(ARGV[5])
local refused = refusal(id, token)
releaseLease(ARGV[3], id, token, 'all', nowMs)
if refused then return refused end
endRequest(id, ARGV[4], nowMs, ARGV[6])
return 'finished'
