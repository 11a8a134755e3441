# frozen_string_literal: true

module Culet
  # The variables of the environment that a Ruby's collector reads, and what they make of its limits. Names and defaults
  # are those of gc.c of Ruby 3.1, 3.2 and 3.3, and of gc/default/default.c of Ruby 3.4, 4.0 and 4.1.
  #
  # @api private
  class CollectorSettings
    # A variable that some version reads. name: a Regexp for a row of them; from, to: the versions, nil for all;
    # default: a size, a factor, or nil for text; least, most: what it must exceed, and what it may not; zero: whether 0
    # is accepted in spite of that; instead: what later versions read.
    Variable = Struct.new(:name, :from, :to, :default, :least, :most, :zero, :instead, keyword_init: true) do
      # @return [Boolean] whether that is its name
      def named?(text) = name === text # rubocop:disable Style/CaseEquality -- a String or a Regexp

      # @param version [Array(Integer, Integer), nil] nil: any
      # @return [Boolean] whether that Ruby reads it
      def read_by?(version)
        version.nil? || ((from.nil? || (version <=> from) >= 0) && (to.nil? || (version <=> to) <= 0))
      end

      # @param version [Array(Integer, Integer)]
      # @return [String, nil] what that Ruby reads in place of it
      def replacement(version) = instead.to_h.select { |since, _| (version <=> since) >= 0 }.values.last
    end

    # One variable of a process. state: :effective, :default (its value is the default), :invalid (Ruby ignores it),
    # :removed (this Ruby reads another) or :unknown (no Ruby reads it); value: the effective one; keeps: whether it
    # makes Ruby keep more memory than by default; instead: what this Ruby reads.
    Setting = Struct.new(:name, :text, :state, :value, :default, :keeps, :instead, keyword_init: true)

    MIB = 1 << 20
    SLOTS = "RUBY_GC_HEAP_0_INIT_SLOTS to RUBY_GC_HEAP_4_INIT_SLOTS"
    BYTES = "RUBY_GC_HEAP_INIT_BYTES"
    private_constant :MIB, :SLOTS, :BYTES

    def self.variable(name, default, **options) = Variable.new(name: name, default: default, least: 0, **options)
    private_class_method :variable

    VARIABLES = [
      variable("RUBY_GC_HEAP_INIT_SLOTS", 10_000, to: [3, 2], instead: { [3, 3] => SLOTS, [4, 1] => BYTES }),
      variable(/\ARUBY_GC_HEAP_[0-4]_INIT_SLOTS\z/, 10_000, from: [3, 3], to: [4, 0], instead: { [4, 1] => BYTES }),
      variable(BYTES, 2_560 << 10, from: [4, 1]),
      variable("RUBY_GC_HEAP_FREE_SLOTS", 4_096),
      variable("RUBY_GC_HEAP_GROWTH_FACTOR", 1.8, least: 1.0),
      variable("RUBY_GC_HEAP_GROWTH_MAX_SLOTS", 0, to: [4, 0], instead: { [4, 1] => "RUBY_GC_HEAP_GROWTH_MAX_BYTES" }),
      variable("RUBY_GC_HEAP_GROWTH_MAX_BYTES", 0, from: [4, 1]),
      variable("RUBY_GC_HEAP_FREE_SLOTS_MIN_RATIO", 0.2, most: 1.0),
      variable("RUBY_GC_HEAP_FREE_SLOTS_GOAL_RATIO", 0.4, most: 1.0, zero: true),
      variable("RUBY_GC_HEAP_FREE_SLOTS_MAX_RATIO", 0.65, most: 1.0),
      variable("RUBY_GC_HEAP_OLDOBJECT_LIMIT_FACTOR", 2.0, zero: true),
      variable("RUBY_GC_HEAP_REMEMBERED_WB_UNPROTECTED_OBJECTS_LIMIT_RATIO", 0.01, from: [3, 3], zero: true),
      variable("RUBY_GC_MALLOC_LIMIT", 16 * MIB),
      variable("RUBY_GC_MALLOC_LIMIT_MAX", 32 * MIB),
      variable("RUBY_GC_MALLOC_LIMIT_GROWTH_FACTOR", 1.4, least: 1.0),
      variable("RUBY_GC_OLDMALLOC_LIMIT", 16 * MIB),
      variable("RUBY_GC_OLDMALLOC_LIMIT_MAX", 128 * MIB),
      variable("RUBY_GC_OLDMALLOC_LIMIT_GROWTH_FACTOR", 1.2, least: 1.0),
      variable("RUBY_GC_LIBRARY", nil, from: [3, 4]),
      variable("RUBY_FREE_MIN", 4_096, to: [2, 0], instead: { [2, 1] => "RUBY_GC_HEAP_FREE_SLOTS" }),
      variable("RUBY_HEAP_MIN_SLOTS", 10_000, to: [2, 0],
                                              instead: { [2, 1] => "RUBY_GC_HEAP_INIT_SLOTS", [3, 3] => SLOTS,
                                                         [4, 1] => BYTES })
    ].freeze
    # Names that variables of the collector have, or had.
    NAMES = /\ARUBY_(?:GC_|HEAP_|FREE_MIN\z)/
    # Those that decide how many slots Ruby keeps.
    SLOT_NAMES = /\ARUBY_GC_HEAP_(?:\w*INIT_|FREE_SLOTS|GROWTH)/
    # A growth that has no limit is the default; a limit keeps less.
    LIMITS_GROWTH = /_GROWTH_MAX_/
    UNITS = { "k" => 10, "m" => 20, "g" => 30 }.freeze
    private_constant :VARIABLES, :NAMES, :SLOT_NAMES, :LIMITS_GROWTH, :UNITS

    # @param environment [Hash{String => String}]
    # @param version [String, nil] of Ruby, such as "3.3.1"; nil: unknown
    def initialize(environment, version: nil)
      @environment = environment
      @version = version.scan(/\d+/).first(2).map(&:to_i) if version
    end

    # @return [Array(Integer, Integer), nil] the version
    attr_reader :version

    # @return [Array<Setting>] one for each variable of a collector that is set, by name
    def list
      @list ||= @environment.select { |name, text| NAMES.match?(name) && !text.empty? }.sort.map { |pair| read(*pair) }
    end

    # @return [Array<String>] names of variables that make Ruby keep more memory than by default
    def keeping = list.select(&:keeps).map(&:name)

    # @return [Array<String>] those of them that make it keep slots
    def keeping_slots = keeping.grep(SLOT_NAMES)

    # @param name [String] of a variable that this Ruby reads
    # @return [Numeric] its effective value
    def effective(name)
      set = list.find { |one| one.name == name && %i[effective default].include?(one.state) }
      set ? set.value : VARIABLES.find { |one| one.named?(name) }.default
    end

    private

    def read(name, text)
      known = VARIABLES.find { |one| one.named?(name) }
      return Setting.new(name: name, text: text, state: :unknown) unless known
      unless known.read_by?(@version)
        return Setting.new(name: name, text: text, state: :removed, instead: known.replacement(@version))
      end

      value = known.default ? number(known, text) : text
      return Setting.new(name: name, text: text, state: :invalid, default: known.default) unless value

      Setting.new(name: name, text: text, state: value == known.default ? :default : :effective, value: value,
                  default: known.default, keeps: keeps?(known, name, value))
    end

    def keeps?(known, name, value) = known.default && !LIMITS_GROWTH.match?(name) && value > known.default

    def number(known, text)
      value = known.default.is_a?(Float) ? Float(text, exception: false) : size(text)
      return unless value
      return value if known.zero && value.zero?

      value if value > known.least && (known.most.nil? || value <= known.most)
    end

    # Parses a size as get_envparam_size of gc.c does.
    def size(text)
      digits, unit = text.match(/\A\s*(0x\h+|\d+)\s*([kmg])?\s*\z/i)&.captures
      Integer(digits) << UNITS.fetch(unit.to_s.downcase, 0) if digits
    rescue ArgumentError
      nil # octal digits that are none
    end
  end
end
