# frozen_string_literal: true

require_relative "extension"

Culet::Boot.native?

module Culet
  # An index of the files of a load path, by the name that `require` gets. culet/require uses it.
  #
  # Each path is stored once; the names that lead to it are its suffixes without the extension, stored as offsets. So
  # the cost of a path does not depend on its depth, and the index is one byte sequence that can be written to a file.
  #
  #   index = Culet::FeatureIndex.new
  #   $LOAD_PATH.each { |folder| index.scan(folder) }
  #   index.find("json/ext")                # => "/usr/lib/ruby/3.1.0/json/ext.rb"
  #   index.write("features.index")
  #   Culet::FeatureIndex.open("features.index").find("json/ext")
  #
  # The extension defines:
  # - files, folders: Arrays of Strings, the paths of files, and of the folders of the load path
  # - changed: an Array of the folders that have changed since they were read
  # - bytes: an Integer, the size of the index; allocations: an Integer, the number of allocations while it was built
  #
  # While files are added, only one thread may use it. Without the native extension, `new` and `open` raise.
  class FeatureIndex
    # Opens an index that `write` has written, for lookups only. A file that another user owns or may write, that is
    # damaged, or that another release wrote is refused.
    #
    # @param file [String] path of the index
    # @return [FeatureIndex]
    # @raise [Culet::Error] when the file cannot be used
    def self.open(file)
      raise Error, Boot.missing_reason unless Boot.native?

      index = allocate
      wrong = index.send(:map, File.expand_path(file))
      raise Error, "#{file} is not a usable index: #{wrong}; write it again with FeatureIndex#write" if wrong

      index
    end

    # @raise [Culet::Error] without the native extension
    def initialize
      raise Error, Boot.missing_reason unless Boot.native?

      self.begin
    end

    # Adds one file, which need not exist. The files of a folder must be added one after the other.
    #
    # @param path [String] absolute; a Ruby file or a native extension
    # @param below [String] the folder of the load path above it
    # @return [self]
    # @raise [ArgumentError] for a path that cannot be indexed
    # @raise [Culet::Error] on an index opened from a file
    def add(path, below:)
      return self if enter(path, below)

      extension = RbConfig::CONFIG["DLEXT"]
      raise ArgumentError, "#{path} is not an absolute path of a .rb or .#{extension} file below #{below}"
    end

    # Adds all files below a folder of a load path, except for hidden files and folders.
    #
    # @param folder [String] its path
    # @return [Symbol] :read; or, without adding anything, :unreadable (more than 50,000 entries, or one that is
    #   unreadable or a special file), :young (changed within the last two seconds, so that a further change might go
    #   unnoticed), :gone (not a folder)
    # @raise [Culet::Error] on an index opened from a file
    def scan(folder)
      read(File.realpath(folder))
    rescue Errno::ENOENT, Errno::ENOTDIR
      :gone
    end

    # @param feature [String] as in `require`: "b/c", "b/c.rb" or "b/c.so"
    # @param folders [Array<String>, nil] folders of the index to search, in order; nil: all, in the order they were
    #   added
    # @return [String, nil] the path; a Ruby file before a native extension in the same folder
    def find(feature, folders = nil)
      case File.extname(feature)
      when "" then look_up(feature, true, true, folders)
      when ".rb" then look_up(feature.delete_suffix(".rb"), true, false, folders)
      when ".so", ".#{RbConfig::CONFIG["DLEXT"]}" then look_up(feature.sub(/\.[^.]*\z/, ""), false, true, folders)
      end
    end

    # Writes the index to a private file, which is replaced atomically.
    #
    # @param file [String] its path
    # @return [String] the path
    # @raise [Culet::Error] when it cannot be written
    def write(file)
      wrong = store(File.expand_path(file))
      raise Error, "cannot write #{file}: #{wrong}" if wrong

      file
    end
  end
end
