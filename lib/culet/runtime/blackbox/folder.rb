# frozen_string_literal: true

module Culet
  module BlackBox
    # The folder of the files, one per process. A living process holds the lock of its file, which processes in other
    # containers can see, too.
    class Folder
      # Maximum number of files of ended processes; the oldest are removed.
      KEEP = 20
      # File names have a random number beside the process number, because process numbers are reused.
      NAME = /\Aculet-(\d{1,10})-\h{12}\.blackbox\z/
      MODE = 0o600
      FOLDER_MODE = 0o700
      private_constant :MODE, :FOLDER_MODE

      attr_reader :path

      # @param path [String] an absolute path
      def initialize(path)
        @path = path
      end

      # Creates a locked file, and the folder if it is missing.
      #
      # @return [File]
      # @raise [SystemCallError]
      def create
        make
        name = "culet-#{::Process.pid}-#{Random.urandom(6).unpack1("H*")}.blackbox"
        file = File.open(File.join(path, name), File::RDWR | File::CREAT | File::EXCL | File::NOFOLLOW, MODE)
        file.close_on_exec = true
        # On a file system without locks, only the process number identifies the process.
        begin
          file.flock(File::LOCK_EX)
        rescue SystemCallError
          nil
        end
        file
      end

      # @param own [Boolean] whether to list only files of this user; in a shared folder, other files are not trusted
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

      # Removes the oldest file of an ended process, but no empty file: a process may be about to
      # lock it.
      #
      # @return [Boolean] whether a file was removed
      def make_room
        oldest = files(own: true).reverse.find { |file| File.size?(file) && Folder.unlocked?(file) }
        !oldest.nil? && remove(oldest)
      rescue SystemCallError
        false
      end

      private

      # @return [Boolean] whether the file no longer exists
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
