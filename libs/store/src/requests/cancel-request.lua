-- Cancels what waits at once, and asks the worker to drop what runs.
-- ARGV: 1 id, 2 owner, or '*' for ourselves
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
-- The flag stays until the request ends: whoever has to requeue it sees it.
if redis.call('HSETNX', request, 'cancel', '1') == 1 then cancelAt(worker, id, token) end
return { 'canceling' }
