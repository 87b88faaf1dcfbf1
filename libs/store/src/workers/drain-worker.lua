-- Ends a worker's leases: none is granted any more, and it keeps what it has. One that stops is told so by a last message
-- in its inbox: whatever was leased before stands in front of it. One that an operator drains goes on as before.
-- KEYS: 1 base   ARGV: 1 worker id, 2 incarnation, or '' for an operator, who means whoever has the id
-- Returns: 1 draining | 0 not registered, or another incarnation has the id
local base = KEYS[1]
--- @include "keys"
--- @include "worker-pool"
local worker = key('worker', ARGV[1])
local incarnation = redis.call('HGET', worker, 'incarnation')
if not incarnation or (ARGV[2] ~= '' and incarnation ~= ARGV[2]) then return 0 end
moveWorker(ARGV[1], 'draining')
-- Who must run alone is not to wait for a worker that takes nothing any more.
if redis.call('GET', base .. ':reserved') == ARGV[1] then redis.call('DEL', base .. ':reserved') end
if ARGV[2] ~= '' then
  redis.call('HSET', worker, 'stopping', '1')
  sayToWorker(ARGV[1], '{"type":"drained"}')
end
return 1
