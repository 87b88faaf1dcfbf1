-- One row's step, under the fence.
-- KEYS: 1 base   ARGV: 1 id, 2 token, 3 event JSON, 4 preview bytes or '', 5 how much is done over all outputs, 6 of how much
-- Returns: 'written' | 'canceling' (written, but the request is to be dropped) | 'lost' | 'ended'
local base = KEYS[1]
--- @include "keys"
--- @include "emit-event"
--- @include "fence"
local refused = refusal(ARGV[1], ARGV[2])
if refused then return refused end
local request = key('request', ARGV[1])
redis.call('HSET', request, 'done', ARGV[5], 'total', ARGV[6])
emitEvent(ARGV[1], false, ARGV[3], ARGV[4])
return redis.call('HEXISTS', request, 'cancel') == 1 and 'canceling' or 'written'
