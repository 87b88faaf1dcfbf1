-- Marks a request queued again: its worker was lost (BullMQ has it back in wait), or gives it back by itself.
-- KEYS: 1 base   ARGV: 1 id, 2 now ms, 3 token of the giver-back, or '' when nobody may hold the lock, 4 worker id or '',
--       5 '1' when the attempt counts (the worker failed), '0' when it does not (it stops)
-- Returns: 'requeued' | 'canceled' (it was to be dropped anyway) | 'held' (somebody else has it) | 'ended'
local base = KEYS[1]
--- @include "keys"
--- @include "emit-event"
--- @include "queue-order"
--- @include "end-request"
--- @include "worker-pool"
local id, nowMs, token = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local request = key('request', id)
-- Rows of a delivery that was lost are its worker's again all the same.
if token ~= '' then releaseLease(ARGV[4], id, token, 'all', nowMs) end
if (redis.call('GET', lockKey(id)) or '') ~= token then return 'held' end
local state, cancel, attempts = unpack(redis.call('HMGET', request, 'state', 'cancel', 'attempts'))
-- Given back before: the reply got lost with the connection, and the command was sent again.
if state == 'queued' and token ~= '' then return 'requeued' end
if state ~= 'running' then return 'ended' end
if cancel then
  endRequest(id, 'canceled', nowMs, '')
  return 'canceled'
end
attempts = tonumber(attempts)
if ARGV[5] == '0' then attempts = redis.call('HINCRBY', request, 'attempts', -1) end
tallyTransition(id, 'queued', nowMs)
tallyOne(token == '' and 'requeue:worker_lost' or ARGV[5] == '1' and 'requeue:engine_failed' or 'requeue:worker_stopped')
redis.call('HSET', request, 'state', 'queued')
redis.call('HDEL', request, 'worker', 'token')
-- It was served before, so it goes before everything that has not been.
redis.call('ZADD', queuedKey, firstInLine, id)
local body = '{"type":"queued","timestampMs":' .. nowMs .. ',"position":' .. redis.call('ZRANK', queuedKey, id) .. ',"attempt":' .. (attempts + 1) .. '}'
emitEvent(id, false, body, '')
redis.call('PUBLISH', base .. ':wakeup', 'requeued')
return 'requeued'
