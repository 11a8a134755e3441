# frozen_string_literal: true

module Runner
  # How many tests ran and what became of them, in minitest's words.
  Counts = Struct.new(:runs, :assertions, :failures, :errors, :skips) do
    # @return [Counts]
    def self.zero = new(0, 0, 0, 0, 0)

    # @param text [String] what a minitest run printed
    # @return [Counts, nil] what its closing line says; nil where there is none
    def self.read(text)
      line = text.scan(self::LINE).last
      line && new(*line.map(&:to_i))
    end

    # @return [Counts] the sum
    def +(other) = self.class.new(*to_a.zip(other.to_a).map(&:sum))

    # @return [Boolean] whether nothing failed
    def good? = failures.zero? && errors.zero?

    # @return [String] minitest's closing line
    def to_s = each_pair.map { |name, count| "#{count} #{name}" }.join(", ")
  end
  Counts::LINE = /^(\d+) runs, (\d+) assertions, (\d+) failures, (\d+) errors, (\d+) skips$/
end
