-- What wrk sends: of four requests a prediction, a learned row, a prediction that waits for its
-- label, and the label of one that was predicted before. Arguments: a file with a row and a target
-- per line, separated by a tab, and the name of the run, which makes ids unique.

local LATE = 400 -- requests of a thread between a prediction and its label
local threads = {}

function setup(thread)
   thread:set("number", #threads)
   table.insert(threads, thread)
end

function init(arguments)
   rows, targets = {}, {}
   for line in io.lines(arguments[1]) do
      local row, target = line:match("^(.*)\t(.*)$")
      table.insert(rows, row)
      table.insert(targets, target)
   end
   name = arguments[2] .. "-" .. number .. "-"
   sent, counts = 0, ""
   by_status = {}
   wrk.method = "POST"
   wrk.headers["content-type"] = "application/json"
end

function request()
   sent = sent + 1
   local kind, at = sent % 4, (sent * 7 + number * 31) % #rows + 1
   if kind == 1 then
      local body = '{"rows": [' .. rows[at] .. '], "targets": [' .. targets[at] .. "]}"
      return wrk.format(nil, "/v1/learn", nil, body)
   elseif kind == 2 then
      local body = '{"rows": [' .. rows[at] .. '], "ids": ["' .. name .. sent .. '"]}'
      return wrk.format(nil, "/v1/predict", nil, body)
   elseif kind == 3 and sent > LATE then
      local late = sent - LATE - 1 -- whose kind is 2
      local of = (late * 7 + number * 31) % #rows + 1
      local body = '{"ids": ["' .. name .. late .. '"], "targets": [' .. targets[of] .. "]}"
      return wrk.format(nil, "/v1/label", nil, body)
   end
   return wrk.format(nil, "/v1/predict", nil, '{"rows": [' .. rows[at] .. "]}")
end

function response(status, headers, body)
   by_status[status] = (by_status[status] or 0) + 1
   counts = ""
   for code, n in pairs(by_status) do
      counts = counts .. code .. ":" .. n .. " "
   end
end

function done(summary, latency, requests)
   local total = {}
   for _, thread in ipairs(threads) do
      for code, n in thread:get("counts"):gmatch("(%d+):(%d+)") do
         total[code] = (total[code] or 0) + tonumber(n)
      end
   end
   local parts = {}
   for code, n in pairs(total) do
      table.insert(parts, string.format('"%s": %d', code, n))
   end
   local errors = summary.errors
   print(string.format(
      'RESULT {"requests": %d, "seconds": %.3f, "p50_ms": %.3f, "p99_ms": %.3f, "p999_ms": %.3f, '
         .. '"longest_ms": %.3f, "socket_errors": %d, "timeouts": %d, "statuses": {%s}}',
      summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3,
      latency:percentile(99) / 1e3, latency:percentile(99.9) / 1e3, latency.max / 1e3,
      errors.connect + errors.read + errors.write, errors.timeout, table.concat(parts, ", ")))
end
