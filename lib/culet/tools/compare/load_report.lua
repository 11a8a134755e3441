-- Makes wrk print its figures as one line that a program can read.
-- Latencies are in microseconds, the duration too.
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format("culet %d %d %d %d %d %d %d %d %d\n",
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
