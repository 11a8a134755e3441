# 500 keys, each computed when it is first needed.
RATES = {}
def work(number) = RATES[(number * 7_919) % 500] ||= "rate of #{number} " * 40
