# frozen_string_literal: true

require_relative "../../text/size"

module Culet
  module Limits
    # The private memory of a process.
    class PrivateMemory
      # @raise [Culet::Error] when the process cannot be read
      def initialize(pid)
        @snapshot = PrivateMemory.snapshot(pid)
      end

      # @return [Integer] bytes of pages that no other process maps
      def private_bytes = @snapshot.private_bytes

      # @param most [Integer] bytes allowed
      # @return [String] why the assertion failed
      def explanation(most)
        "process #{@snapshot.pid} has #{Text::Size.limit(private_bytes, most)} of private memory, " \
          "not less than #{Text::Size.limit(most)}; " \
          "its #{Text::Size.human(@snapshot.process.rss_bytes)} of resident memory:\n" \
          "#{PrivateMemory.rows(SnapshotLevels.new(@snapshot).levels)}"
      end

      # @raise [Culet::Error]
      def self.snapshot(pid)
        return Scope::Reader.new(pid, chunks: 0).snapshot unless pid == ::Process.pid

        admit = ->(reader) { Culet.send(:admit_reader, reader) } if Culet.native?
        Scope::OwnReader.new(admit: admit, chunks: 0).snapshot
      end

      # @param levels [Hash{String => Integer}] bytes by level
      # @return [String] one line for each level that is not empty
      def self.rows(levels)
        present = levels.reject { |_, bytes| bytes.zero? }
        present.map do |name, bytes|
          format("  %-24s %10s", Levels::TITLES.fetch(name), Text::Size.human(bytes))
        end.join("\n")
      end
    end

    # A fork of this process, measured when its block has returned.
    class AfterFork
      # @yield in the forked process
      # @raise [Culet::Error] when the block raises there, or a process cannot be read
      def initialize(&work)
        child, done, leave = start(work)
        report = done.read
        raise Error, "the forked process failed: #{report.force_encoding(Encoding::UTF_8).scrub}" unless report == DONE

        snapshot = PrivateMemory.snapshot(child)
        @census = Cow::Breakdown.new(snapshot, relative: PrivateMemory.snapshot(::Process.pid))
        @private_bytes = snapshot.private_bytes
      ensure
        [done, leave].compact.each(&:close)
        ::Process.wait(child) if child
      end

      # @return [Integer] private bytes of the forked process
      attr_reader :private_bytes

      # @return [Float] share of the inherited bytes that are still shared, 0 to 1
      def kept
        total = @census.total
        total.inherited.zero? ? 1.0 : total.shared.fdiv(total.inherited)
      end

      # @param at_least [Float] the share that was required
      # @return [String] why the assertion failed
      def explanation(at_least)
        total = @census.total
        "the forked process still shares #{percent(kept)} of the #{Text::Size.human(total.inherited)} it inherited, " \
          "less than #{percent(at_least)}; " \
          "#{Text::Size.human(total.unshared)} became private:\n#{rows(&:unshared)}"
      end

      # @param most [Integer] bytes allowed
      # @return [String] why the assertion failed
      def explanation_of_private(most)
        "the forked process has #{Text::Size.limit(@private_bytes, most)} of private memory, " \
          "more than #{Text::Size.limit(most)}:\n#{rows(&:private)}"
      end

      private

      DONE = "done"
      private_constant :DONE

      # The child waits, so that its memory can be read as the block left it; at_exit handlers do not run in it.
      def start(work)
        done, report = IO.pipe
        stay, leave = IO.pipe
        child = ::Process.fork { [done, leave].each(&:close) && live(work, report, stay) }
        [report, stay].each(&:close)
        [child, done, leave]
      end

      def live(work, report, stay)
        report.write(outcome(work))
        report.close
        stay.read
      ensure
        ::Process.exit!(0)
      end

      def outcome(work)
        work.call
        DONE
      rescue Exception => e # rubocop:disable Lint/RescueException -- whatever it is, the parent reports it
        "#{e.message} (#{e.class})"
      end

      def rows(&figure) = PrivateMemory.rows(@census.levels.transform_values(&figure))

      def percent(share) = Text::Numbers.percent(share, 1)
    end
  end
end
