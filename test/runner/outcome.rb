# frozen_string_literal: true

require_relative "counts"

module Runner
  # What became of one test file: what its process printed, and how it ended.
  class Outcome
    # @return [String] all that was printed
    attr_reader :text
    # @return [Counts] with an error more where the process itself failed
    attr_reader :counts
    # @return [String, nil] why the process failed, beside what its tests say
    attr_reader :fault

    # @param text [String] all that the process printed
    # @param success [Boolean] whether its exit status was 0
    # @param fault [String, nil] why the process failed, where that is known already
    def initialize(text, success:, fault: nil)
      @text = text
      read = Counts.read(text)
      @fault = fault || fault_of(read, success)
      @counts = read || Counts.zero
      @counts += Counts.new(0, 0, 0, 1, 0) if @fault
    end

    # @return [Boolean] whether nothing failed
    def good? = counts.good?

    # @return [String] what failed and why: minitest's list, or all that was printed where there is none; and the fault
    def complaint
      list = text[/.*^Finished in [^\n]*\n(.*)^\d+ runs, /m, 1] || text
      [list.strip, fault && "Error: #{fault}"].compact.reject(&:empty?).join("\n\n")
    end

    private

    def fault_of(counts, success)
      return "the file ended before its tests were done" unless counts
      return "the file ran no test" if counts.runs.zero?

      "the tests went well, but their process did not end well" if counts.good? && !success
    end
  end
end
