# frozen_string_literal: true

require_relative "../system/ruby_options"
require_relative "setup"
require_relative "thresholds"

module Culet
  # A change that saves memory. name: of the remedy; text: its effect; line: the text to write, and file: the place;
  # cost: in CPU time; undo: the way back; saves_bytes with its bounds: the predicted saving, or nil.
  Remedy = Struct.new(:name, :text, :line, :file, :cost, :undo, :saves_bytes, :low_bytes, :high_bytes,
                      keyword_init: true) do
    # @return [String] what to write, and where
    def to_s = "#{line} in #{file}"

    # @return [Hash{String => Object}] for JSON
    def document
      to_h.slice(:name, :line, :file, :saves_bytes, :low_bytes, :high_bytes, :cost, :undo).transform_keys(&:to_s)
    end
  end

  # Each remedy once, for some processes of one program: with the line that its server takes, unless it is in place
  # there. What it saves is a matter of Savings.
  #
  # @api private
  class Remedies
    START = "the unit file, Dockerfile or Procfile that starts the program"
    SHELL = "the shell command that starts the program"
    GROWTH_FACTOR = "RUBY_GC_HEAP_GROWTH_FACTOR"
    # The line that loads culet in a server, and its file.
    LOADERS = { "puma" => ["plugin :culet", "config/puma.rb"],
                "sidekiq" => ["require \"culet/sidekiq\"", "config/initializers/sidekiq.rb"],
                "pitchfork" => ["require \"culet/pitchfork\"", "config/pitchfork.rb"] }.freeze
    # Beside the plugin.
    SERVED = "Culet::Warmup.requests = %w[/]"
    # Name => what it does, what to write and where, its cost, how to undo it; LOADERS come first where a server is
    # named.
    ALL = {
      "allocator" => ["use culet's allocator, which returns what is free", "culet run -- COMMAND", START,
                      "none, or a few percent less CPU", "remove the prefix"],
      "trim" => ["return free memory after each major collection", RubyOptions.advice("auto"), SHELL,
                 "about 0.1 % CPU", "remove it", %w[puma sidekiq pitchfork]],
      "arenas" => ["limit glibc to two arenas", "MALLOC_ARENA_MAX=#{Thresholds::ARENAS}", START,
                   "threads wait for each other in malloc now and then", "remove the variable"],
      "warmup" => ["collect and compact before the fork, so that workers write less to what they share",
                   "Culet.warmup", "the code that runs before the fork", "a second at boot", "remove the line",
                   %w[puma pitchfork]],
      "requests" => ["serve requests before the fork, so that workers do not build what these build",
                     "Culet.warmup(requests: %w[/], app: APP)", "the code that runs before the fork",
                     "seconds at boot", "remove the line", %w[puma pitchfork]],
      "preload" => ["load the application once, before the fork", "preload_app! (Puma), or load it first",
                    "the code or configuration that forks", "none; connections must be opened after the fork",
                    "remove the line"],
      "compact" => ["compact the heap when the program has booted", "Culet.warmup",
                    "the code that ends the program's boot", "a second at boot", "remove the line"],
      "collector" => ["let Ruby choose the limits of its collector", "unset VARIABLES", START,
                      "a few more collections at boot", "set the variables again"],
      "growth" => ["let the Ruby heap grow in smaller steps", "#{GROWTH_FACTOR}=1.1", START,
                   "more collections while the heap grows", "remove the variable"],
      "unused" => ["do not load what never runs", "require: false", "Gemfile", "none", "remove the option"],
      "limit" => ["keep the process below its memory limit", RubyOptions.advice("limit"), SHELL, "about 0.1 % CPU",
                  "remove it"]
    }.freeze
    # Those that belong to no command of their own.
    NAMES = (ALL.keys - %w[limit]).freeze
    private_constant :START, :SHELL, :GROWTH_FACTOR, :LOADERS, :SERVED, :ALL

    # @param remedies [Array<Remedy>] that are alternatives
    # @return [String, nil] what to write, and where; nil for none
    def self.sentence(remedies)
      files = remedies.group_by(&:file).map { |file, some| "#{some.map(&:line).join(", or ")} in #{file}" }
      files.join(", or ") unless files.empty?
    end

    # @param setups [Array<Setup>] of the processes
    # @param forks [Boolean] whether they share memory by a fork
    def initialize(setups, forks: false)
      @setups = setups
      @server = setups.lazy.filter_map(&:server).first
      @forks = forks
    end

    # @param name [String] one of ALL
    # @return [Remedy, nil] nil where it is in place, or does not apply
    def [](name)
      return if in_place?(name)

      text, line, file, cost, undo, servers = ALL.fetch(name)
      line, file = LOADERS.fetch(@server) if servers&.include?(@server)
      line = SERVED if name == "requests" && @server
      line = "unset #{keeping.join(" ")}" if name == "collector"
      Remedy.new(name: name, text: text, line: line, file: file, cost: cost, undo: undo)
    end

    # @param names [Array<String>] in the order of the sentence
    # @return [Array<Remedy>] those that are not in place
    def list(*names) = names.filter_map { |name| self[name] }

    # @return [Array<String>] the settings that make Ruby keep memory
    def keeping = @keeping ||= @setups.flat_map { |one| one.collector.keeping }.uniq.sort

    # @return [Array<String>] those of them that make it keep slots; unsetting them comes before compaction
    def keeping_slots = @setups.flat_map { |one| one.collector.keeping_slots }.uniq.sort

    private

    def in_place?(name)
      case name
      when "allocator" then @setups.all?(&:culet?)
      when "trim" then @setups.none?(&:keeps_free_memory?)
      when "arenas" then @setups.none? { |one| one.allocator == "glibc" } || @setups.any?(&:arena_limit)
      when "warmup" then !@forks || @setups.any?(&:warmed_up?)
      when "requests" then !@forks || @server == "sidekiq"
      when "compact" then keeping_slots.any? || @setups.any?(&:warmed_up?)
      when "collector" then keeping.empty?
      when "growth" then @setups.any? { |one| one.collector.list.any? { |set| set.name == GROWTH_FACTOR } }
      else false
      end
    end
  end
end
