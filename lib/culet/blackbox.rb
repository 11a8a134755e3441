# frozen_string_literal: true

require_relative "../culet"
return if Culet::Native.another_copy?(__FILE__, "culet/blackbox")

require_relative "runtime/blackbox/folder"
require_relative "runtime/blackbox/head"
require_relative "runtime/blackbox/hooks"
require_relative "runtime/blackbox/settings"
require_relative "runtime/profile/labels"
require_relative "system/background_thread"
require_relative "system/memory_group"

module Culet
  # With CULET_BLACKBOX=DIR, every process that loads a part of culet keeps a file of 256 KiB in DIR, and so does each
  # process that it forks: where its memory is, second by second, the largest sites of the memory profile if that is on,
  # and the last requests and jobs. A process that ends removes its file. After a SIGKILL the file is whole, and
  # `culet autopsy DIR` says what the process held. The next process that starts, or the one that has forked it, writes
  # a summary of three lines to stderr.
  #
  # Requests and jobs are the blocks of Culet::Profile.label, so `use Culet::Profile::Rack` and the like name them.
  #
  # The extension defines:
  # - Culet::BlackBox.running?: whether this process has a black box
  # - Culet::BlackBox.stats: a Hash of what it has written, and of its cost
  module BlackBox
    # Between two looks at the forked processes.
    WATCH_SECONDS = 0.5
    # Summaries that a process writes when it starts.
    SUMMARIES = 3
    # Longer names are cut.
    NAME_BYTES = 190
    FULL = [Errno::ENOSPC, Errno::EDQUOT].freeze
    private_constant :WATCH_SECONDS, :SUMMARIES, :NAME_BYTES, :FULL

    # Without a lock, which a signal handler could not take: Ruby runs each call of an Array's or a Hash's methods whole.
    @children = []
    @statuses = {} # of processes that were waited for: the signal, or 0
    @missing = {} # whose status was not known at the last look

    class << self
      # Starts the black box of this process and of those that it will fork. Does nothing if there is one.
      #
      # @param folder [String] where the files are; it is made if it is missing
      # @param look_seconds [Integer] least time between two looks at what keeps the memory, which are taken when the
      #   limit of the control group comes near; 0: none are
      # @return [String, nil] a sentence if there is none: the program runs on without it
      def start(folder, look_seconds: Settings::LOOK_SECONDS)
        return if running?
        return "there is no black box: #{Native.missing_reason("culet.so")}" unless Culet.native?

        @look_seconds = look_seconds
        @folder = Folder.new(File.expand_path(folder))
        @folder.prune
        open_file or return problem
        Hooks.install
        end_at_exit
        report_ended
        nil
      end

      # Notes the limit that holds now. The latest ones are kept.
      #
      # @param bytes [Integer, nil] nil: there is none
      # @param source [String] where it comes from
      # @return [void]
      def limit(bytes, source) = write_note("limit #{source}", bytes)

      # Notes a step that was taken to stay below the limit. The latest ones are kept.
      #
      # @param name [String]
      # @param freed_bytes [Integer, nil] how much it has freed
      # @return [void]
      def step(name, freed_bytes: nil) = write_note("step #{name}", freed_bytes)

      # @return [String, nil] path of this process's file
      def path = (@file&.path if running?)

      # A forked process begins a file of its own.
      #
      # @api private
      def begin_in_child
        @file&.close
        @file = nil
        forget_children
        return unless @folder && !@ended

        open_file or warn("culet: #{problem}")
      end

      # The processes that were forked are those of another process now.
      #
      # @api private
      def forget_children
        @missing = {}
        @children = []
        @statuses = {}
        @watcher = nil
      end

      # The program has waited for a process.
      #
      # @api private
      def ended(status)
        @statuses[status.pid] = status.termsig.to_i if @children.include?(status.pid)
      end

      # Looks from time to time whether a forked process has been killed.
      #
      # @api private
      def watch(pid)
        return unless running?

        @children << pid
        @watcher = BackgroundThread.start("culet-blackbox") { watch_children } unless @watcher&.alive?
      end

      # The process ends by its own will.
      #
      # @api private
      # @return [true]
      def discard
        close_file
        @ended = true
      end

      # The process becomes another program or ends, unless the block returns or raises.
      #
      # @api private
      # @return [Object] the block's value
      def discard_for
        discard
        yield
      ensure
        @ended = false
        open_file if @folder
      end

      # @api private
      # @return [String, nil] the reason why there is no black box
      attr_reader :problem

      private

      # On a full volume, files of ended processes give way, one after the other.
      def open_file
        @file = @folder.create
        files = MemoryGroup.files
        map(@file.fileno, Head.text(files), files, @look_seconds || 0)
        true
      rescue SystemCallError, NoMemoryError => e
        remove_file
        retry if FULL.include?(e.class) && @folder.make_room
        @problem = "no black box can be kept in #{@folder.path} (#{Error.reason(e)}); the program runs " \
                   "without it"
        false
      end

      def close_file
        close if Culet.native?
        remove_file
      end

      def remove_file
        return unless @file

        path = @file.path
        @file.close
        @file = nil
        File.unlink(path)
      rescue SystemCallError
        nil # it was removed, or the folder is not writable any more
      end

      # Registered first, so that it runs after the program's own handlers.
      def end_at_exit
        return if @registered

        @registered = true
        at_exit { end_of_process($!) }
      end

      # Who runs out of memory wants to know why.
      def end_of_process(error)
        return close_file unless error.is_a?(NoMemoryError) && running?

        mark("error NoMemoryError: #{error.message}".byteslice(0, NAME_BYTES))
        close
      end

      def write_note(text, bytes)
        return unless running?

        note(text.to_s.scrub("?").byteslice(0, NAME_BYTES).scrub(""), bytes)
      end

      def report_ended
        ended = @folder.ended
        return if ended.empty?

        require_relative "tools/autopsy"
        Autopsy::Ended.new(ended).take(SUMMARIES).each { |lines| warn(*lines.map { |line| "culet: #{line}" }) }
      rescue Error, SystemCallError => e
        warn("culet: the black boxes in #{@folder.path} cannot be read (#{e.message})")
      end

      def watch_children
        until @children.empty?
          sleep(WATCH_SECONDS)
          @children.dup.each { |pid| look_at(pid) }
        end
      end

      # A zombie's status says which signal it was.
      def look_at(pid)
        status = ended_status(pid) or return
        file = @folder.files(own: true).find { |path| path[/culet-(\d+)-/, 1].to_i == pid }
        unlocked = file && Folder.unlocked?(file)
        # A zombie's file is locked until the last of its threads has ended.
        return if file && !unlocked && File.exist?("/proc/#{pid}")

        # Of two threads that were started at once, one tells of it.
        first = @children.delete(pid)
        [@missing, @statuses].each { |all| all.delete(pid) }
        return unless first && unlocked

        require_relative "tools/autopsy"
        lines = Autopsy::Ended.new([file]).witnessed(signal: status)
        warn(*lines.map { |line| "culet: #{line}" }) if lines
      rescue Error, SystemCallError => e
        warn("culet: the black box of process #{pid} cannot be read (#{e.message})")
      end

      # @return [Integer, Symbol, nil] the signal that ended the process, 0: none; :unknown; nil: it runs
      def ended_status(pid)
        return @statuses[pid] if @statuses.key?(pid)

        fields = File.read("/proc/#{pid}/stat").rpartition(") ").last.split
        return unless %w[Z X x].include?(fields.first)

        fields.last.match?(/\A\d+\z/) ? fields.last.to_i & 0x7f : :unknown
      rescue Errno::ENOENT, Errno::ESRCH
        # It was waited for a moment ago, or its status went elsewhere (Process.detach).
        status = @statuses[pid] || (:unknown if @missing[pid])
        @missing[pid] = true
        status
      end
    end

    unless Culet.native?
      # @return [Boolean] always false
      def self.running? = false

      # @return [Hash] always empty
      def self.stats = {}
    end

    settings = Settings.new(ENV.fetch("CULET_BLACKBOX", nil), ENV.fetch("CULET_BLACKBOX_LOOKS", nil))
    sentence = settings.folder ? start(settings.folder, look_seconds: settings.look_seconds) : nil
    sentence ||= settings.problem
    Native.warn(sentence) if sentence
  end
end
