-- In front of every script. Its one key is `<prefix>:v2:{<model>}`: all that it builds names for has that hash tag and lives in one
-- slot. Names as in connection/keys.ts.
local base = KEYS[1]
local function key(kind, id) return base .. ':' .. kind .. ':' .. id end

-- By Redis, ms: callers' clocks differ.
local function timeMs()
  local seconds, microseconds = unpack(redis.call('TIME'))
  return seconds * 1000 + math.floor(microseconds / 1000)
end
