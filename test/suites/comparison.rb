# frozen_string_literal: true

module Suites
  # A suite on glibc's allocator against the same on the preloaded one: which tests does the preload make fail?
  #
  # A test that passes without the preload and not with it is run again, so many times either way. Where it fails again
  # with the preload, and never without, the preload is to blame; otherwise it is a flake.
  class Comparison
    AGAIN = 3
    # name: of the test; plain, preloaded: what became of it, the first run and the further ones
    Difference = Struct.new(:name, :plain, :preloaded, :reason, keyword_init: true) do
      def to_s = "#{name}: #{plain.join(", ")} on glibc; #{preloaded.join(", ")} on culet#{"; #{reason}" if reason}"
    end

    attr_reader :plain, :preloaded

    # @param plain [Outcomes] of the first run without the preload
    # @param preloaded [Outcomes] with it
    # @param known [Hash{String => String}] differences that are meant: the test's name, and why
    # @yield [name, preload] runs one test again; @yieldreturn [Symbol] what became of it
    def initialize(plain:, preloaded:, known: {}, &again)
      @plain = plain
      @preloaded = preloaded
      @known = known
      @again = again
    end

    # @return [Array<Difference>] tests that the preload makes fail
    def added = repeated.reject { |one| one.reason || flake?(one) }

    # @return [Array<Difference>] tests that fail now and then
    def flakes = repeated.select { |one| one.reason.nil? && flake?(one) }

    # @return [Array<Difference>] tests that fail for a reason that is known
    def known = repeated.select(&:reason)

    # @return [Boolean] whether all is well: something ran, and the preload makes nothing fail
    def good? = plain.count(:passed).positive? && added.empty?

    # @return [String] several lines
    def to_s
      ["on glibc: #{plain}", "on culet: #{preloaded}", *complaints,
       *section("culet makes these fail", added), *section("these fail for a reason that is known", known),
       *section("these fail now and then, not by culet", flakes),
       "#{added.size} failures are culet's"].join("\n")
    end

    private

    def complaints
      { "on glibc" => plain, "on culet" => preloaded }.flat_map { |where, run| run.complaints.map { |text| "#{where}: #{text}" } }
    end

    def section(title, differences)
      differences.empty? ? [] : ["#{title}:", *differences.map { |one| "  #{one}" }]
    end

    def flake?(difference)
      difference.plain.drop(1).any? { |outcome| bad?(outcome) } || difference.preloaded.drop(1).none? { |outcome| bad?(outcome) }
    end

    def bad?(outcome) = %i[failed missing].include?(outcome)

    def repeated
      @repeated ||= plain.names.reject { |name| bad?(plain[name]) }.select { |name| bad?(preloaded[name]) }.map { |name| repeat(name) }
    end

    # In turns, so that a busy stretch of the machine falls on both. What is known needs no further runs.
    def repeat(name)
      reason = @known[name]
      runs = Array.new(reason ? 0 : AGAIN) { [@again.call(name, false), @again.call(name, true)] }
      Difference.new(name: name, plain: [plain[name], *runs.map(&:first)], preloaded: [preloaded[name], *runs.map(&:last)], reason: reason)
    end
  end
end
