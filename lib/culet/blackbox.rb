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
  # With CULET_BLACKBOX=DIR, every process that loads a part of culet, and each process that it forks, keeps a file of
  # 256 KiB in DIR: the levels of its memory each second, the largest sites of the memory profile if that is on, and the
  # last requests and jobs. A process that exits removes its file. After a SIGKILL the file remains, and
  # `culet autopsy DIR` reports its contents. The parent, or the next process that starts, writes a summary of three
  # lines to stderr.
  #
  # Requests and jobs are the blocks of Culet::Profile.label, so `use Culet::Profile::Rack` and the like name them.
  #
  # The extension defines:
  # - Culet::BlackBox.running?: whether this process has a black box
  # - Culet::BlackBox.stats: a Hash of the records written, and of their cost
  module BlackBox
    # Interval of the checks for ended children.
    WATCH_SECONDS = 0.5
    # Summaries that a process writes when it starts.
    SUMMARIES = 3
    # Longer names are cut.
    NAME_BYTES = 190
    FULL = [Errno::ENOSPC, Errno::EDQUOT].freeze
    private_constant :WATCH_SECONDS, :SUMMARIES, :NAME_BYTES, :FULL

    # Not locked, because a signal handler cannot take a Mutex; the GVL makes each call of an Array or a Hash atomic.
    @children = []
    @statuses = {} # pid => the signal that ended the child, or 0; of children that the program has waited for
    @missing = {} # pid => true, of ended children whose status is not known

    class << self
      # Starts the black box of this process and of the processes that it will fork, unless one is running.
      #
      # @param folder [String] the folder of the files; created if it is missing
      # @param look_seconds [Integer] minimum interval of the analyses of retention, which run near the limit of the
      #   control group; 0: none
      # @return [String, nil] the reason if the black box cannot start
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

      # Records the memory limit. The file keeps the latest records.
      #
      # @param bytes [Integer, nil] nil: no limit
      # @param source [String] the origin of the limit, e.g. "memory.max"
      # @return [void]
      def limit(bytes, source) = write_note("limit #{source}", bytes)

      # Records a step towards staying below the limit. The file keeps the latest records.
      #
      # @param name [String]
      # @param freed_bytes [Integer, nil] the memory that the step freed
      # @return [void]
      def step(name, freed_bytes: nil) = write_note("step #{name}", freed_bytes)

      # @return [String, nil] path of this process's file
      def path = (@file&.path if running?)

      # Opens a new file in a forked process.
      #
      # @api private
      def begin_in_child
        @file&.close
        @file = nil
        forget_children
        return unless @folder && !@ended

        open_file or warn("culet: #{problem}")
      end

      # Called in a forked process, whose parent has the children.
      #
      # @api private
      def forget_children
        @missing = {}
        @children = []
        @statuses = {}
        @watcher = nil
      end

      # @api private
      # @param status [Process::Status] of a process that the program has waited for
      def ended(status)
        @statuses[status.pid] = status.termsig.to_i if @children.include?(status.pid)
      end

      # Reports the forked process when it is killed.
      #
      # @api private
      # @param pid [Integer]
      def watch(pid)
        return unless running?

        @children << pid
        @watcher = BackgroundThread.start("culet-blackbox") { watch_children } unless @watcher&.alive?
      end

      # Removes the file, because the process exits.
      #
      # @api private
      # @return [true]
      def discard
        close_file
        @ended = true
      end

      # Removes the file around a block that calls `exec` or `exit!`, and opens a new one if the block fails.
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

      # On a full volume, removes files of ended processes until the new one fits.
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
        nil # another process has removed it, or the folder is not writable
      end

      # The first handler to be registered runs last, after the program's own.
      def end_at_exit
        return if @registered

        @registered = true
        at_exit { end_of_process($!) }
      end

      # After a NoMemoryError the file stays for `culet autopsy`.
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

      def look_at(pid)
        status = ended_status(pid) or return
        file = @folder.files(own: true).find { |path| path[/culet-(\d+)-/, 1].to_i == pid }
        unlocked = file && Folder.unlocked?(file)
        # A zombie's file is locked until the last of its threads has ended.
        return if file && !unlocked && File.exist?("/proc/#{pid}")

        # Of two watchers that were started at once, only the first reports the process.
        first = @children.delete(pid)
        [@missing, @statuses].each { |all| all.delete(pid) }
        return unless first && unlocked

        require_relative "tools/autopsy"
        lines = Autopsy::Ended.new([file]).witnessed(signal: status)
        warn(*lines.map { |line| "culet: #{line}" }) if lines
      rescue Error, SystemCallError => e
        warn("culet: the black box of process #{pid} cannot be read (#{e.message})")
      end

      # @return [Integer, Symbol, nil] the signal that ended the process; 0: none; :unknown; nil: the process runs
      def ended_status(pid)
        return @statuses[pid] if @statuses.key?(pid)

        fields = File.read("/proc/#{pid}/stat").rpartition(") ").last.split
        return unless %w[Z X x].include?(fields.first)

        fields.last.match?(/\A\d+\z/) ? fields.last.to_i & 0x7f : :unknown
      rescue Errno::ENOENT, Errno::ESRCH
        # The program is waiting for the process, or has used Process.detach: the second check decides.
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
