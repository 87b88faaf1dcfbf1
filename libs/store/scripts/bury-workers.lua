-- Removes every worker whose heartbeat has stopped.
-- KEYS: 1 base
-- Returns: {worker id, number of requests it had, …}
local base = KEYS[1]
--- @include "keys"
--- @include "worker-pool"
--- @include "tally"
local buried = {}
for _, list in ipairs({ idleKey, busyKey, loadingKey, drainingKey }) do
  for _, workerId in ipairs(redis.call('ZRANGE', list, 0, -1)) do
    if redis.call('EXISTS', key('alive', workerId)) == 0 then
      local requests = removeWorker(workerId)
      tallyOne('buried')
      buried[#buried + 1] = workerId
      buried[#buried + 1] = requests
    end
  end
end
return buried
