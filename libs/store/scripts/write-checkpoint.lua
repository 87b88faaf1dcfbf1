-- Where a row is, under the fence, for whoever has to go on with it.
-- KEYS: 1 base   ARGV: 1 id, 2 token, 3 row index, 4 bytes
-- Returns: 'written' | 'lost' | 'ended'
local base = KEYS[1]
--- @include "keys"
--- @include "fence"
local refused = refusal(ARGV[1], ARGV[2])
if refused then return refused end
redis.call('SET', key('checkpoint', ARGV[1]) .. ':' .. ARGV[3], ARGV[4], 'PX', redis.call('PTTL', key('request', ARGV[1])))
return 'written'
