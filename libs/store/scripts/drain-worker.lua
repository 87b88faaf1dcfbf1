-- Ends a worker's leases: none is granted any more, and it keeps what it has. One that stops is told so by a last message
-- in its inbox: whatever was leased before stands in front of it. One that an operator drains goes on as before.
-- KEYS: 1 base   ARGV: 1 worker id, 2 incarnation, or '' for an operator, who means whoever has the id, 3 now ms
-- Returns: 1 draining | 0 not registered, or another incarnation has the id
local base = KEYS[1]
--- @include "keys"
--- @include "worker-pool"
local worker = key('worker', ARGV[1])
local incarnation = redis.call('HGET', worker, 'incarnation')
if not incarnation or (ARGV[2] ~= '' and incarnation ~= ARGV[2]) then return 0 end
stopLeasing(ARGV[1], ARGV[3])
if ARGV[2] ~= '' then
  redis.call('HSET', worker, 'stopping', '1')
  redis.call('RPUSH', key('inbox', ARGV[1]), '{"type":"drained"}')
end
return 1
