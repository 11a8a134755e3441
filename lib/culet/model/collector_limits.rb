# frozen_string_literal: true

require_relative "../text/size"
require_relative "agent/inquiry"
require_relative "collector_settings"
require_relative "gain"

module Culet
  # The collector's limits in a running program. A boot allocates much, so the limits grow; then the
  # program adds that much to its memory before Ruby collects again (https://github.com/ruby/ruby/pull/18433).
  #
  # @api private
  class CollectorLimits
    # Slots are counted in those of the smallest heap (Ruby 3.4 and 4.0).
    SLOT_BYTES = 40
    # Of Ruby's heap pages up to 3.1, and since.
    PAGE_BYTES = { true => 16_384, false => 65_536 }.freeze
    LAST_SMALL = [3, 1].freeze
    # Since then Process.warmup computes anew by how much the heap may grow.
    RECOMPUTED = [4, 1].freeze
    # How often the start of a limit is far above it. By default the first limit never grows further.
    FAR = 2
    private_constant :SLOT_BYTES, :PAGE_BYTES, :LAST_SMALL, :RECOMPUTED, :FAR

    # Time limits of the agent's answer, in seconds; it is not to count objects.
    COUNT_SECONDS = 0.001
    WAIT_SECONDS = 1.0
    private_constant :COUNT_SECONDS, :WAIT_SECONDS

    # @param pid [Integer] of a process that has the agent
    # @param settings [CollectorSettings] with the version of its Ruby
    # @return [CollectorLimits, nil] nil where the agent does not answer
    def self.ask(pid, settings:)
      inquiry = Agent::Inquiry.new(pid, data: false, limit_seconds: COUNT_SECONDS, wait_seconds: WAIT_SECONDS)
      records = inquiry.call
      stat = records.fact("gc")
      new(stat.merge(records.fact("vm").to_h), settings: settings) if stat
    rescue Error
      nil
    end

    # @param stat [Hash{String => Integer}] of GC.stat
    # @param settings [CollectorSettings] with the version of that Ruby
    def initialize(stat, settings:)
      @stat = stat
      @settings = settings
    end

    # @return [Integer] bytes by which Ruby may enlarge its heap without a collection
    def allocatable_bytes
      @stat["heap_allocatable_bytes"] || @stat["heap_allocatable_slots"]&.*(SLOT_BYTES) ||
        (@stat["heap_allocatable_pages"].to_i * page_bytes)
    end

    # @return [Integer] bytes of malloc that make Ruby collect
    def malloc_bytes = @stat["malloc_increase_bytes_limit"].to_i

    # @return [Integer] bytes of malloc, of old objects, that make Ruby collect all objects
    def old_malloc_bytes = @stat["oldmalloc_increase_bytes_limit"].to_i

    # @return [Integer] bytes that may become garbage beyond what the limits allow of a program that allocates little
    def inflated_bytes
      slots = Thresholds::SLOT_RESERVE * @stat["heap_live_slots"].to_i * SLOT_BYTES
      beyond(malloc_bytes, FAR * start) + beyond(old_malloc_bytes, FAR * old_start) + beyond(allocatable_bytes, slots)
    end

    # @param whole [Integer] bytes of the process
    # @return [Boolean] whether that is much for the process
    def inflated?(whole) = Gain.new(inflated_bytes, of: whole).worth?

    # Switches that the agent reports beside GC.stat => their meaning.
    SWITCHES = { "gc_disabled" => "the collector is off (GC.disable)",
                 "gc_stress" => "GC.stress is on: Ruby collects at every allocation",
                 "gc_auto_compact" => "GC.auto_compact is on: each major collection compacts the heap" }.freeze
    private_constant :SWITCHES

    # @return [Boolean] whether Ruby collects only when it is told to
    def disabled? = @stat["gc_disabled"] == true

    # @return [Array<String>] sentences on switches of the collector that are not as by default
    def switches = SWITCHES.select { |name, _| @stat[name] == true }.values

    # @return [String] the three limits
    def sentence
      "Ruby collects after #{human(malloc_bytes)} of malloc (#{human(start)} at the start) or " \
        "#{human(old_malloc_bytes)} of old objects' malloc (#{human(old_start)} at the start); until then its heap " \
        "may grow by #{human(allocatable_bytes)}"
    end

    # @return [Array<String>] names of what lowers them
    def remedies = (@settings.version <=> RECOMPUTED) >= 0 ? %w[compact growth] : %w[growth]

    private

    def human(bytes) = Text::Size.human(bytes)

    def start = @settings.effective("RUBY_GC_MALLOC_LIMIT")

    def old_start = @settings.effective("RUBY_GC_OLDMALLOC_LIMIT")

    def beyond(bytes, most) = [(bytes - most).round, 0].max

    def page_bytes = PAGE_BYTES.fetch((@settings.version <=> LAST_SMALL) <= 0)
  end
end
