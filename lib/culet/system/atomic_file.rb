# frozen_string_literal: true

require_relative "../errors"

module Culet
  # Writes a file completely or not at all.
  #
  # Other users may be able to write to the file's folder (/tmp), so nothing there is trusted. The content goes to a new
  # file of a random name, which is then renamed. A symbolic link at the destination is followed, and stays, only if it
  # belongs to this user or to root; a pipe is written to on the same condition. A device is written to. A program or
  # library is not replaced: `culet lib --link` makes links to one.
  #
  # @api private
  module AtomicFile
    # Mode of a file with text from a process's memory.
    PRIVATE_MODE = 0o600
    # Before the umask.
    PUBLIC_MODE = 0o666
    MOST_LINKS = 40
    # Opened by name they would be truncated, and renaming cannot replace them.
    DESCRIPTOR = %r{\A/(?:dev/(?<name>stdout|stderr)|(?:dev|proc/self)/fd/(?<number>\d{1,9}))\z}
    private_constant :PRIVATE_MODE, :PUBLIC_MODE, :MOST_LINKS, :DESCRIPTOR

    # A file being written: write to `io`, then call `commit` or `discard`.
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

      # @return [Boolean] whether the content can be discarded: not on a device or a pipe
      def file? = true

      # Renames the file to its destination.
      #
      # @raise [SystemCallError]
      def commit
        @io.close
        File.rename(@beside, @path)
        @beside = nil
      ensure
        discard
      end

      # Removes the file; does nothing after `commit`.
      def discard
        @io.close
      rescue SystemCallError
        nil # no space for buffered content, which is discarded anyway
      ensure
        File.unlink(@beside) if @beside && File.exist?(@beside)
      end
    end

    # A device, a pipe or a descriptor of this process, written to directly.
    class Passage
      # @return [IO]
      attr_reader :io

      def initialize(io)
        @io = io
        io.binmode
      end

      # @return [Boolean] false: the content cannot be discarded
      def file? = false

      # Closes the descriptor.
      def commit = @io.close

      # Closes the descriptor.
      def discard = @io.close
    end

    module_function

    # @param path [String] the destination
    # @param content [String] bytes to write
    # @param secret [Boolean] whether the file is private (mode 0600); otherwise a replaced file of this user keeps its
    #   mode and a new one gets 0666 less the umask
    # @raise [Culet::Error] when it cannot be written; no part of it remains
    def write(path, content, secret: false) = open(path, secret: secret) { |io| io.write(content) }

    # @param path [String] the destination
    # @param secret [Boolean] as of `write`
    # @yieldparam io [IO] takes the content
    # @raise [Culet::Error] as `write`
    def open(path, secret: false)
      draft = start(path, secret: secret)
      yield draft.io
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

    # Checks before a long run whether `write` would succeed.
    #
    # @param path [String] the destination
    # @raise [Culet::Error]
    def check(path)
      return if descriptor(path)

      target, stat = resolve(path)
      return if stat && !stat.file? && !stat.directory?

      directory = File.dirname(target)
      raise Error, "#{path} is a directory; give a file" if stat&.directory?
      raise Error, "cannot write #{path}: the directory #{directory} does not exist" unless File.directory?(directory)
      raise Error, "cannot write #{path}: the directory #{directory} is not writable" unless File.writable?(directory)
    rescue SystemCallError => e
      raise unwritable(path, e)
    end

    # @param path [String]
    # @param error [SystemCallError, IOError]
    # @return [Culet::Error] to be raised
    def unwritable(path, error) = Error.new("cannot write #{path}: #{Error.reason(error)}")

    # @return [Integer, nil]
    def descriptor(path)
      match = DESCRIPTOR.match(path.b) or return
      match[:number] ? Integer(match[:number], 10) : { "stdout" => 1, "stderr" => 2 }.fetch(match[:name])
    end

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

    # Only root can make devices. Files are replaced, not written to.
    def trust(target, stat, path)
      if stat.file?
        type = "program or library" if elf?(target)
      elsif (stat.symlink? || stat.pipe? || stat.socket?) && !stat.owned? && !stat.uid.zero?
        type = "#{stat.symlink? ? "symbolic link" : stat.ftype} of another user"
      end
      raise Error, "cannot write #{path}: #{target} is a #{type}; choose another file" if type
    end

    # It may be a pipe by now.
    def elf?(path)
      File.open(path, File::RDONLY | File::NONBLOCK | File::NOCTTY) { |file| file.read(4) } == "\x7fELF"
    rescue SystemCallError
      false
    end

    # The file may have been replaced since it was checked.
    def open_special(target, path)
      file = File.open(target, File::WRONLY | File::NOFOLLOW | File::NOCTTY)
      trust(target, file.stat, path)
      file
    rescue Error
      file.close
      raise
    end

    private_class_method :descriptor, :resolve, :trust, :elf?, :open_special
  end
end
