-- In front of every script. Its one key is `<prefix>:v2:{<model>}`: all that it builds names for has that hash tag and lives in one
-- slot. Names as in connection/keys.ts.
local base = KEYS[1]
local function key(kind, id) return base .. ':' .. kind .. ':' .. id end

-- By Redis, ms: callers' clocks differ. One moment for all of a script.
local scriptMs
local function timeMs()
  if scriptMs then return scriptMs end
  local seconds, microseconds = unpack(redis.call('TIME'))
  scriptMs = seconds * 1000 + math.floor(microseconds / 1000)
  return scriptMs
end
