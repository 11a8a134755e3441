# frozen_string_literal: true

require_relative "../render/map"

module Culet
  module CLI
    # Shared by the verbs that draw: writes the picture of snapshots to a file.
    module Pictures
      private

      # The page that shows one snapshot, or plays several and shows what changed.
      #
      # @param snapshots [Array<Culet::Scope::Snapshot>] in the order they were taken
      # @param changes [Boolean] whether the page opens with what changed
      # @raise [Culet::Error] when it cannot be written
      def write_html(snapshots, path, changes: false)
        require_relative "../render/map/html"
        page = Culet::Map::Html.new(snapshots, changes: changes)
        write_file(path, page.to_s)
        err.puts("culet: not in #{path}, which would be too large: #{page.left_out.join(", ")}") if page.left_out.any?
      end

      # The picture of the last of them.
      #
      # @raise [Culet::Error] when it cannot be written
      def write_png(snapshots, path)
        require_relative "../render/map/png"
        write_file(path, Culet::Map::Png.new(snapshots.last).to_s)
        err.puts("culet: #{path} shows the last of #{snapshots.size} snapshots; --html shows all") if snapshots.size > 1
      end

      # @param words [Array<String>] where the snapshots are from
      # @raise [Culet::Error] instead of Malformed
      def drawing(words)
        yield
      rescue Culet::Scope::Malformed => e
        raise Error, "the data read from #{words.join(" ")} is inconsistent: #{e.message}"
      end
    end
  end
end
