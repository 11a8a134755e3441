class Rates
  def rate(number) = (@rates ||= {})[number] ||= compute(number)
  def compute(number) = Array.new(60) { |index| index * number * 1.1 } # LEAK
end
RATES = Rates.new
def work(number) = RATES.rate(number)
