# frozen_string_literal: true

require_relative "../culet"

module Culet
  # Every file that a load path can answer, found by the name that a `require` gives. It is what culet/require asks.
  #
  # A path is stored once. Each name that a `require` may give is the end of it, less the extension, and points into it: a
  # number, not a String. So a path costs the same however deep it lies, and hardly a Ruby object is made. The whole is
  # one run of bytes that can be kept in a file.
  #
  #   index = Culet::FeatureIndex.new
  #   $LOAD_PATH.each { |folder| index.scan(folder) }
  #   index.find("json/ext")                # => "/usr/lib/ruby/3.1.0/json/ext.rb"
  #   index.write("features.index")
  #   Culet::FeatureIndex.open("features.index").find("json/ext")
  #
  # From the extension come:
  # - files, folders: Arrays of Strings, the paths in the index: of files, and of the load path's folders
  # - changed: an Array of the folders, at whatever depth, that are not as they were when they were read
  # - bytes: an Integer, of the index; allocations: an Integer, how often memory was allocated while it was made, at most
  #   twice for each path, and in fact a few times in all, because its tables double when they are full
  #
  # Not to be used by two threads at once while it is added to. Needs the native extension: without it `new` and `open` raise.
  class FeatureIndex
    # Reads an index that `write` has kept. It can be looked up in, not added to. A file that is somebody else's, that others
    # may write, that is damaged or of another release is refused.
    #
    # @param file [String]
    # @return [FeatureIndex]
    # @raise [Culet::Error] says why it cannot be
    def self.open(file)
      raise Error, Native.missing_reason("culet.so") unless Culet.native?

      index = allocate
      wrong = index.send(:map, File.expand_path(file))
      raise Error, "#{file} is no index that can be used: #{wrong}; make it anew by FeatureIndex#write" if wrong

      index
    end

    # @raise [Culet::Error] without the native extension
    def initialize
      raise Error, Native.missing_reason("culet.so") unless Culet.native?

      self.begin
    end

    # Adds one file, whether it is there or not. The files of a folder have to be added one after the other.
    #
    # @param path [String] absolute; a Ruby file or a native extension
    # @param below [String] the folder of the load path in which it lies, at whatever depth
    # @return [self]
    # @raise [ArgumentError] when the index cannot have it
    # @raise [Culet::Error] when this is the index of a file
    def add(path, below:)
      return self if enter(path, below)

      raise ArgumentError, "#{path} is no absolute path of a .rb or .#{RbConfig::CONFIG["DLEXT"]} file below #{below}"
    end

    # Adds all files of a folder of a load path, at whatever depth; those whose path has a part that begins with a dot are
    # left out.
    #
    # @param folder [String]
    # @return [Symbol] :read; :unreadable: there are more than 50,000 entries, or something that may not
    #   be read or is no file, and its files are left out; :young: it changed within the last two seconds, so that a further
    #   change might not show, and is left out; :gone: it is no folder
    # @raise [Culet::Error] when this is the index of a file
    def scan(folder)
      read(File.realpath(folder))
    rescue Errno::ENOENT, Errno::ENOTDIR
      :gone
    end

    # @param feature [String] as a `require` names it: "b/c", "b/c.rb" or "b/c.so"
    # @param folders [Array<String>, nil] folders of the index, the first first; nil: all, in the order of their coming
    # @return [String, nil] the path; of two files of one folder that of Ruby
    def find(feature, folders = nil)
      case File.extname(feature)
      when "" then look_up(feature, true, true, folders)
      when ".rb" then look_up(feature.delete_suffix(".rb"), true, false, folders)
      when ".so", ".#{RbConfig::CONFIG["DLEXT"]}" then look_up(feature.sub(/\.[^.]*\z/, ""), false, true, folders)
      end
    end

    # Keeps the index in a file of this user alone, which is replaced as a whole.
    #
    # @param file [String]
    # @return [String] the file
    # @raise [Culet::Error] when it cannot be written
    def write(file)
      wrong = store(File.expand_path(file))
      raise Error, "cannot write #{file}: #{wrong}" if wrong

      file
    end
  end
end
