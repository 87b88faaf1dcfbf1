-- The end of a request, under the fence, and the end of its lease.
-- KEYS: 1 base   ARGV: 1 id, 2 token, 3 worker id, 4 state, 5 now ms, 6 error JSON or '',
--       7 outputs that must be stored, 0 if it does not matter
-- Returns: 'finished' | 'incomplete' (an output is missing: nothing was done) | 'lost' | 'ended' (it was ended by somebody else: a deadline; the lease is over all the same)
local base = KEYS[1]
--- @include "keys"
--- @include "emit-event"
--- @include "queue-order"
--- @include "end-request"
--- @include "worker-pool"
--- @include "fence"
local id, token, nowMs = ARGV[1], ARGV[2], tonumber(ARGV[5])
local refused = refusal(id, token)
for index = 0, tonumber(ARGV[7]) - 1 do
  if not refused and redis.call('HEXISTS', key('request', id), 'output:' .. index) == 0 then return 'incomplete' end
end
releaseLease(ARGV[3], id, token, 'all', nowMs)
if refused then return refused end
endRequest(id, ARGV[4], nowMs, ARGV[6])
return 'finished'
