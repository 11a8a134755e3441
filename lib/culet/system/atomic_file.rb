# frozen_string_literal: true

require_relative "../errors"

module Culet
  # Writes a file whole or not at all.
  #
  # Other users may be able to write to the file's folder (/tmp), so nothing there is trusted. The content goes to a new
  # file of a random name, which is then renamed. A symbolic link at the destination is followed, and stays, only if it
  # belongs to this user or to root; a pipe is written to on the same condition. A device is written to.
  module AtomicFile
    # Mode of a file with text from a process's memory.
    PRIVATE_MODE = 0o600
    # Before the umask.
    PUBLIC_MODE = 0o666
    MOST_LINKS = 40
    # Opened by name they would be truncated, and renaming cannot replace them.
    DESCRIPTOR = %r{\A/(?:dev/(?<name>stdout|stderr)|(?:dev|proc/self)/fd/(?<number>\d{1,9}))\z}
    private_constant :PRIVATE_MODE, :PUBLIC_MODE, :MOST_LINKS, :DESCRIPTOR

    # A file under way: `io` takes its content, then one of `commit` and `discard` must be called.
    class Draft
      # @return [IO]
      attr_reader :io

      # @param path [String] the destination, links resolved
      # @param mode [Integer] of a new file, before the umask
      # @param kept [Integer, nil] mode of the file that is replaced
      # @raise [SystemCallError]
      def initialize(path, mode, kept)
        @path = path
        @beside = File.join(File.dirname(path), ".culet-#{Random.urandom(12).unpack1("H*")}.part")
        @io = File.open(@beside, File::WRONLY | File::CREAT | File::EXCL | File::NOFOLLOW | File::BINARY, mode)
        @io.chmod(kept) if kept
      end

      # @return [Boolean] whether the content can be taken back: not from a device or a pipe
      def file? = true

      # The file bears its name.
      #
      # @raise [SystemCallError]
      def commit
        @io.close
        File.rename(@beside, @path)
        @beside = nil
      ensure
        discard
      end

      # Nothing is left. May be called after `commit`.
      def discard
        @io.close
      rescue SystemCallError
        nil # no room for the rest, which goes anyway
      ensure
        File.unlink(@beside) if @beside && File.exist?(@beside)
      end
    end

    # The same for a device, a pipe or a descriptor of this process, which take the content at once.
    class Passage
      attr_reader :io

      # @param io [IO]
      def initialize(io)
        @io = io
        io.binmode
      end

      def file? = false

      def commit = @io.close

      def discard = @io.close
    end

    module_function

    # @param path [String] the destination
    # @param content [String] bytes to write
    # @param secret [Boolean] whether the content is for this user alone: the file gets mode 0600. Else a file of this
    #   user's that is replaced keeps its mode, and a new one gets what the umask leaves of 0666.
    # @raise [Culet::Error] when it cannot be written; nothing is left behind
    def write(path, content, secret: false)
      draft = start(path, secret: secret)
      draft.io.write(content)
      draft.commit
    rescue SystemCallError, IOError => e
      raise unwritable(path, e)
    ensure
      draft&.discard
    end

    # @param path [String] the destination
    # @param secret [Boolean] as of `write`
    # @return [Draft, Passage]
    # @raise [SystemCallError] when it cannot be written
    # @raise [Culet::Error] when it must not be written
    def start(path, secret: false)
      number = descriptor(path)
      return Passage.new(IO.for_fd(number, autoclose: false).dup) if number

      target, stat = resolve(path)
      raise Errno::EISDIR if stat&.directory?
      return Passage.new(open_special(target, path)) if stat && !stat.file?

      kept = stat.mode & 0o777 if stat&.owned? && !secret
      Draft.new(target, secret ? PRIVATE_MODE : PUBLIC_MODE, kept)
    end

    # Says beforehand what would keep `write` from succeeding, where that can be known.
    #
    # @param path [String] the destination
    # @raise [Culet::Error]
    def check(path)
      return if descriptor(path)

      target, stat = resolve(path)
      return if stat && !stat.file? && !stat.directory?

      directory = File.dirname(target)
      raise Error, "#{path} is a directory; name a file" if stat&.directory?
      raise Error, "cannot write #{path}: there is no directory #{directory}" unless File.directory?(directory)
      raise Error, "cannot write #{path}: the directory #{directory} may not be written to" unless File.writable?(directory)
    rescue SystemCallError => e
      raise unwritable(path, e)
    end

    # @return [Integer, nil]
    def descriptor(path)
      match = DESCRIPTOR.match(path) or return
      match[:number] ? Integer(match[:number], 10) : { "stdout" => 1, "stderr" => 2 }.fetch(match[:name])
    end
    private_class_method :descriptor

    # @return [Array(String, File::Stat or nil)] where the links at the path's end lead, and what is there
    def resolve(path)
      target = path
      MOST_LINKS.times do
        stat = File.lstat(target)
        trust(target, stat, path)
        return [target, stat] unless stat.symlink?

        link = File.readlink(target)
        target = link.start_with?("/") ? link : File.join(File.dirname(target), link)
      end
      raise Errno::ELOOP
    rescue Errno::ENOENT
      [target, nil]
    end
    private_class_method :resolve

    # Only root can make devices. Files are replaced, not written to.
    def trust(target, stat, path)
      return unless stat.symlink? || stat.pipe? || stat.socket?
      return if stat.owned? || stat.uid.zero?

      raise Error, "cannot write #{path}: #{target} is a #{stat.symlink? ? "symbolic link" : stat.ftype} of another user's; name another file"
    end
    private_class_method :trust

    # The file could have been exchanged since it was checked.
    def open_special(target, path)
      file = File.open(target, File::WRONLY | File::NOFOLLOW | File::NOCTTY)
      trust(target, file.stat, path)
      file
    rescue Error
      file.close
      raise
    end
    private_class_method :open_special

    def unwritable(path, error) = Error.new("cannot write #{path}: #{error.message.sub(/ @ .*/, "")}")
    private_class_method :unwritable
  end
end
