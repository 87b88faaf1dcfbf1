-- Asks again for what a dead request asked for, as a request of its own. Once: who retries the same one again is told what came of it.
-- KEYS: 1 base
-- ARGV: 1 id of the dead request, 2 new id, 3 now ms, 4 envelope JSON, 5 slots, 6 priority, 7 deadline ms, 8 start deadline ms,
--       9 result TTL ms, 10 gone TTL ms, 11 cost, 12 the envelope without prompts, to be kept from the end on, or '', 13 webhook JSON or '',
--       14 outputs
-- Returns: {'retried', id, its state or '' when its time is over, 1 when it is new | 0} | {'not-dead', state} | {'not-kept'} | {'gone'} | {'unknown'}
local base = KEYS[1]
--- @include "keys"
--- @include "emit-event"
--- @include "queue-order"
--- @include "store-request"
--- @include "ownership"
local deadId, id = ARGV[1], ARGV[2]
local dead = key('request', deadId)
local refused = ownershipRefusal(deadId, '*')
if refused then return { refused } end
local state, retriedAs, stripped, owner, weight = unpack(redis.call('HMGET', dead, 'state', 'retriedAs', 'stripped', 'owner', 'weight'))
if state ~= 'failed' then return { 'not-dead', state } end
if retriedAs then return { 'retried', retriedAs, redis.call('HGET', key('request', retriedAs), 'state') or '', 0 } end
if stripped then return { 'not-kept' } end
storeRequest(id, {
  nowMs = tonumber(ARGV[3]), envelope = ARGV[4], slots = ARGV[5], outputs = ARGV[14], priority = tonumber(ARGV[6]), deadlineMs = tonumber(ARGV[7]),
  startDeadlineMs = tonumber(ARGV[8]), resultTtlMs = tonumber(ARGV[9]), goneTtlMs = tonumber(ARGV[10]), owner = owner,
  weight = weight, cost = ARGV[11], promptless = ARGV[12], webhook = ARGV[13], retryOf = deadId })
redis.call('HSET', dead, 'retriedAs', id)
redis.call('PUBLISH', base .. ':wakeup', 'admitted')
return { 'retried', id, 'queued', 1 }
