-- Forgets a shard of a model in two steps, so that either all shards of a model are forgotten or none.
-- ARGV: 1 'refuse' (refuse new requests if the shard is not in use)
--         | 'delete' (delete its keys, unless a worker has registered since)
--       2 min ms for which sweeps must have found no worker, in a shard that is not paused, or '' for any shard
--       3 ms for which new requests are refused
-- Returns: {'done'} | {'in-use', workers, open requests, unsent webhooks}
--- @include "worker-pool"
local refused, outbox = base .. ':forgotten', base .. ':webhooks'
local workers, open = redis.call('ZCARD', heartbeatsKey), redis.call('ZCARD', base .. ':deadlines')
local unsent = redis.call('XLEN', outbox)
local isFree = workers + open + unsent == 0
if ARGV[2] ~= '' then
  local unservedMs = tonumber(redis.call('HGET', sweptKey, 'unservedMs') or 0)
  isFree = isFree and unservedMs >= tonumber(ARGV[2]) and redis.call('EXISTS', base .. ':paused') == 0
end
if ARGV[1] == 'delete' then isFree = isFree and redis.call('EXISTS', refused) == 1 end
if not isFree then return { 'in-use', workers, open, unsent } end
if ARGV[1] == 'refuse' then
  redis.call('SET', refused, '1', 'PX', ARGV[3])
  return { 'done' }
end
-- Keys of ended requests stay until their TTL.
local names = { 'asset', 'shares', 'arrivals', 'dead', 'paused', 'counters', 'swept', 'capacity', 'reserved',
  'restarting', 'moved', 'webhooks' }
for _, name in ipairs(names) do
  redis.call('DEL', base .. ':' .. name)
end
return { 'done' }
