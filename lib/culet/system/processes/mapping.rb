# frozen_string_literal: true

module Culet
  module Processes
    # One line of /proc/PID/maps: addresses, permissions ("r-xp"), offset in the file, and the path (or a name such
    # as "[heap]", or nil).
    Mapping = Struct.new(:first, :past, :permissions, :offset, :inode, :path, keyword_init: true) do
      # @return [Integer]
      def bytes = past - first

      # @return [Boolean]
      def file? = inode.positive? && path.to_s.start_with?("/")

      # @return [Boolean]
      def executable? = permissions.include?("x")

      # @return [Boolean] whether the file was removed or replaced after it was mapped
      def deleted? = path.to_s.end_with?(" (deleted)")
    end

    # @param text [String] the content of /proc/PID/maps
    # @return [Array<Mapping>]
    def self.parse_maps(text)
      text.each_line.filter_map do |line|
        addresses, permissions, offset, _device, inode, path = line.chomp.split(" ", 6)
        first, past = addresses.split("-").map { |hex| hex.to_i(16) }
        Mapping.new(first: first, past: past, permissions: permissions, offset: offset.to_i(16), inode: inode.to_i,
                    path: path&.lstrip)
      end
    end
  end
end
