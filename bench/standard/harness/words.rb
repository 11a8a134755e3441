# frozen_string_literal: true

# Texts that are the same in every run.
module Words
  LIST = %w[server thread memory page worker request queue cache index ticket version release report chart heap
            block string object array table column record session cookie header body route view layout asset].freeze

  module_function

  # @param count [Integer] of words
  def text(seed, count) = Array.new(count) { |index| LIST[((seed * 7) + (index * index * 3)) % LIST.size] }.join(" ")

  # @return [String]
  def paragraphs(seed, count) = Array.new(count) { |index| text(seed + index, 60) }.join("\n\n")
end
