COUNTS = Hash.new { |hash, key| hash[key] = Array.new(80, key) } # LEAK
def work(number) = COUNTS["visitor #{number}"][0]
