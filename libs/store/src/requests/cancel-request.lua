-- Cancels a queued request at once, and sends a cancel message to the worker of a running one.
-- ARGV: 1 id, 2 owner, or '*' for any owner
-- Returns: {'canceled'} | {'canceling'} | {'ended', state} | {'missing'}
--- @include "worker-pool"
--- @include "end-request"
local id, request = ARGV[1], key('request', ARGV[1])
local state, owner, worker, token = unpack(redis.call('HMGET', request, 'state', 'owner', 'worker', 'token'))
if not state or (ARGV[2] ~= '*' and ARGV[2] ~= owner) then return { 'missing' } end
if state == 'queued' then
  endRequest(id, 'canceled', '')
  return { 'canceled' }
end
if state ~= 'running' then return { 'ended', state } end
-- The flag stays until the request ends: if it is requeued instead, `requeue` cancels it.
if redis.call('HSETNX', request, 'cancel', '1') == 1 then sendCancel(worker, id, token) end
return { 'canceling' }
