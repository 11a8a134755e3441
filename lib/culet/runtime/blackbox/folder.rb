# frozen_string_literal: true

module Culet
  module BlackBox
    # The folder of the files, one for each process. A living process holds the lock of its file, so other containers
    # know that it is alive too.
    class Folder
      # More files of ended processes are removed, the oldest first.
      KEEP = 20
      # Beside the number of the process, a random one: numbers are used again.
      NAME = /\Aculet-(\d{1,10})-\h{12}\.blackbox\z/
      MODE = 0o600
      FOLDER_MODE = 0o700
      private_constant :MODE, :FOLDER_MODE

      attr_reader :path

      # @param path [String] an absolute path
      def initialize(path)
        @path = path
      end

      # Makes the folder if it is missing, and a file in it, which is locked.
      #
      # @return [File]
      # @raise [SystemCallError]
      def create
        make
        name = "culet-#{::Process.pid}-#{Random.urandom(6).unpack1("H*")}.blackbox"
        file = File.open(File.join(path, name), File::RDWR | File::CREAT | File::EXCL | File::NOFOLLOW, MODE)
        file.close_on_exec = true
        # Where the file system has no locks, the process is known by its number alone.
        begin
          file.flock(File::LOCK_EX)
        rescue SystemCallError
          nil
        end
        file
      end

      # @param own [Boolean] whether only those of this user are meant: in a shared folder, others may be anything
      # @return [Array<String>] paths of the files, the newest first
      def files(own: false)
        names = Dir.children(path, encoding: Encoding::BINARY).grep(NAME).map { |name| File.join(path, name) }
        dated = names.filter_map do |file|
          stat = File.lstat(file)
          [file, stat.mtime] if stat.file? && (stat.owned? || !own)
        rescue SystemCallError
          nil # removed meanwhile
        end
        dated.sort_by { |_, time| time }.reverse.map(&:first)
      end

      # @param file [String] path of a file
      # @return [Boolean] whether no process holds its lock
      def self.unlocked?(file)
        File.open(file, File::RDONLY | File::NOFOLLOW | File::NONBLOCK) do |io|
          io.flock(File::LOCK_SH | File::LOCK_NB) != false
        end
      rescue SystemCallError
        false
      end

      # @return [Array<String>] paths of this user's files whose processes have ended, the newest first
      def ended = files(own: true).select { |file| Folder.unlocked?(file) }

      # Removes the files of ended processes beyond KEEP.
      def prune
        ended.drop(KEEP).each { |file| remove(file) }
      rescue SystemCallError
        nil # the folder is missing, or cannot be read
      end

      # Removes the oldest file of an ended process. One without content may be that of a process which is about to
      # lock it.
      #
      # @return [Boolean] whether there was one
      def make_room
        oldest = files(own: true).reverse.find { |file| File.size?(file) && Folder.unlocked?(file) }
        !oldest.nil? && remove(oldest)
      rescue SystemCallError
        false
      end

      private

      # @return [Boolean] whether it is gone
      def remove(file)
        File.unlink(file)
        true
      rescue Errno::ENOENT
        true # another process does the same
      rescue SystemCallError
        false # the folder is another user's, or mounted for reading only
      end

      def make
        Dir.mkdir(path, FOLDER_MODE)
      rescue Errno::EEXIST
        nil
      end
    end
  end
end
