class Rates
  def rate(number) = (@rates ||= {})[number] ||= compute(number)
  def compute(number) = "rate of #{number} " * 40 # LEAK
end
RATES = Rates.new
def work(number) = RATES.rate(number)
