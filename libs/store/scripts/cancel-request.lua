-- Cancels what waits at once, and asks the worker to drop what runs.
-- KEYS: 1 base   ARGV: 1 id, 2 now ms, 3 owner
-- Returns: {'canceled'} | {'canceling'} | {'ended', state} | {'gone'} | {'unknown'}
local base = KEYS[1]
--- @include "keys"
--- @include "emit-event"
--- @include "queue-order"
--- @include "end-request"
--- @include "ownership"
local id, nowMs = ARGV[1], tonumber(ARGV[2])
local request = key('request', id)
local refused = ownershipRefusal(id, ARGV[3])
if refused then return { refused } end
local state, worker = unpack(redis.call('HMGET', request, 'state', 'worker'))
if state == 'queued' then
  endRequest(id, 'canceled', nowMs, '')
  return { 'canceled' }
end
if state ~= 'running' then return { 'ended', state } end
-- The flag stays until the request ends: if its worker is lost before it reads its inbox, the next lease sees it.
if redis.call('HSETNX', request, 'cancel', nowMs) == 1 and worker and redis.call('EXISTS', key('worker', worker)) == 1 then
  redis.call('RPUSH', key('inbox', worker), '{"type":"cancel","id":"' .. id .. '"}')
end
return { 'canceling' }
