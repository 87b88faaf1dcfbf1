-- Registered workers of a model: those first that operators look for.
-- KEYS: 1 base   ARGV: 1 the most
-- Returns: {{id, list it is in, 1 when it was heard of | 0, {field, value, …}}, …}
local base = KEYS[1]
--- @include "keys"
--- @include "worker-pool"
local workers, most = {}, tonumber(ARGV[1])
for _, list in ipairs({ 'draining', 'loading', 'busy', 'idle' }) do
  if #workers < most then
    for _, workerId in ipairs(redis.call('ZRANGE', listKey(list), 0, most - #workers - 1)) do
      workers[#workers + 1] = { workerId, list, isHeard(workerId) and 1 or 0, redis.call('HGETALL', key('worker', workerId)) }
    end
  end
end
return workers
