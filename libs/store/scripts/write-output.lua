-- One chunk of a finished output, under the fence. The last chunk makes the output readable.
-- KEYS: 1 base   ARGV: 1 id, 2 token, 3 output index, 4 chunk index, 5 chunk bytes, 6 event JSON, 7 output info JSON, 8 chunks in all
-- Returns: 'written' | 'lost' | 'ended'
local base = KEYS[1]
--- @include "keys"
--- @include "emit-event"
--- @include "fence"
local id, index, chunk = ARGV[1], ARGV[3], tonumber(ARGV[4])
local refused = refusal(id, ARGV[2])
if refused then return refused end
local request, output = key('request', id), key('output', id) .. ':' .. index
redis.call('HSET', output, chunk, ARGV[5])
if chunk == tonumber(ARGV[8]) - 1 then
  redis.call('HSET', output, 'info', ARGV[7])
  redis.call('HSET', request, 'output:' .. index, ARGV[7])
end
redis.call('PEXPIRE', output, redis.call('PTTL', request))
emitEvent(id, false, ARGV[6], '')
return 'written'
