# frozen_string_literal: true

require "json"
require "tempfile"

module AllocatorBench
  # One run of one probe under one contender.
  class Trial
    # The figures of a run, or the reason why it does not count.
    Outcome = Struct.new(:figures, :reason)

    # @param command [Array<String>]
    # @param contender [Contender]
    # @param timeout [Numeric] seconds after which the probe is ended
    def initialize(command:, contender:, timeout:)
      @command = command
      @contender = contender
      @timeout = timeout
    end

    # @return [Outcome]
    def run
      Tempfile.create("probe") do |out|
        Tempfile.create("probe") do |err|
          status = follow(spawn(environment, *@command, in: File::NULL, out: out, err: err, pgroup: true))
          outcome(status, File.read(out.path), File.read(err.path))
        end
      end
    end

    private

    # Without the options of the Ruby that runs this.
    def environment = { "RUBYOPT" => nil, "RUBYLIB" => nil }.merge(@contender.environment)

    # @return [Process::Status, nil] nil after the timeout
    def follow(pid)
      watcher = Process.detach(pid)
      watcher.join(@timeout) && watcher.value
    ensure
      end_group(pid, watcher)
    end

    # The probe's children are in its group.
    def end_group(pid, watcher)
      Process.kill(:KILL, -pid)
    rescue Errno::ESRCH
      nil # all have ended by themselves
    ensure
      watcher&.join
    end

    def outcome(status, out, err)
      return Outcome.new(nil, "it did not end within #{@timeout} s") unless status
      unless status.success?
        return Outcome.new(nil, "it ended with #{ended(status)}#{": #{err.lines.first.strip}" unless err.strip.empty?}")
      end

      document = JSON.parse(out)
      return Outcome.new(derived(document.fetch("figures")), nil) if @contender.serves?(document.fetch("malloc"))

      Outcome.new(nil, "the preload did not take: malloc is that of #{document.fetch("malloc")}")
    rescue JSON::ParserError, KeyError
      Outcome.new(nil, "it printed no line of figures")
    end

    def ended(status)
      status.signaled? ? "signal #{Signal.signame(status.termsig)}" : "status #{status.exitstatus}"
    end

    # Ratios of two figures of the same run.
    RATIOS = { "all_growth_over_plain" => %w[all_growth plain_growth],
               "growth_after_a_tenth" => %w[rss_at_the_end_bytes rss_after_a_tenth_bytes] }.freeze
    private_constant :RATIOS

    # None where the allocator lacks the operation, e.g. a trim.
    def derived(figures)
      return {} if figures["able"] == false

      RATIOS.each_with_object(figures.select { |_, value| value.is_a?(Numeric) }) do |(name, (above, below)), all|
        all[name] = all[above].to_f / all[below] if all[below]
      end
    end
  end
end
