-- Takes a request in, or refuses it before anything is stored.
-- KEYS: 1 base
-- ARGV: 1 id, 2 now ms, 3 most queued requests, 4 '1' to refuse a model without a live worker, 5 envelope JSON,
--       6 rows, 7 priority, 8 deadline ms, 9 start deadline ms, 10 result TTL ms, 11 gone TTL ms, 12 owner
-- Returns: {'admitted', position, possible 0|1} | {'overloaded', waiting} | {'unserved'} | {'duplicate'}
local base = KEYS[1]
--- @include "keys"
--- @include "emit-event"
--- @include "is-served"
local id, nowMs, rows, priority = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[6]), tonumber(ARGV[7])
local deadlineMs, startDeadlineMs = tonumber(ARGV[8]), tonumber(ARGV[9])
local request = key('request', id)
local known = redis.call('HGET', request, 'envelope')
if known then
  -- The same submit again, because its reply got lost with the connection: its caller has yet to add the job.
  local rank = known == ARGV[5] and redis.call('ZRANK', queuedKey, id)
  return rank and { 'admitted', rank, isServed() and 1 or 0 } or { 'duplicate' }
end
local waiting = redis.call('ZCARD', queuedKey)
if waiting >= tonumber(ARGV[3]) then return { 'overloaded', waiting } end
local possible = isServed()
if ARGV[4] == '1' and not possible then return { 'unserved' } end

-- The order of dispatch: priority, then arrival; BullMQ builds its own score in the same way.
local order = priority * 4294967296 + redis.call('INCR', base .. ':arrivals')
-- An open request outlives its deadline by the time the janitor needs to end it, even if that is down for a while.
local ttlMs = deadlineMs - nowMs + tonumber(ARGV[10])
redis.call('HSET', request, 'state', 'queued', 'envelope', ARGV[5], 'rows', rows, 'order', order, 'attempts', 0,
  'createdAtMs', nowMs, 'deadlineMs', deadlineMs, 'startDeadlineMs', startDeadlineMs, 'resultTtlMs', ARGV[10], 'goneTtlMs', ARGV[11],
  'owner', ARGV[12])
redis.call('PEXPIRE', request, ttlMs)
redis.call('SET', key('gone', id), ARGV[12], 'PX', ttlMs + ARGV[11])
redis.call('ZADD', queuedKey, order, id)
redis.call('ZADD', deadlinesKey, math.min(deadlineMs, startDeadlineMs), id)
local position = redis.call('ZRANK', queuedKey, id)
emitEvent(id, ttlMs, '{"type":"queued","timestampMs":' .. nowMs .. ',"position":' .. position .. ',"attempt":1}', '')
return { 'admitted', position, possible and 1 or 0 }
