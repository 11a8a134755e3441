PAGES = Hash.new { |hash, key| hash[key] = key * 40 } # LEAK
def work(number) = PAGES["visitor #{number}"].size
