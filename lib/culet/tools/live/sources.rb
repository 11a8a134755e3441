# frozen_string_literal: true

require_relative "../../errors"
require_relative "map_feed"
require_relative "sites_feed"

module Culet
  module Live
    # What the page asks for one process while a panel is open: the map, and the sites of the profile. Only processes
    # that are watched are read.
    class Sources
      # Processes whose maps are kept.
      MOST_FEEDS = 4
      private_constant :MOST_FEEDS

      # @yieldreturn [Array<Integer>] processes that are watched
      def initialize(&pids)
        @pids = pids
        @lock = Mutex.new
        @feeds = Hash.new { |all, kind| all[kind] = {} }
      end

      # @return [Hash{String => #call}] for the server
      def to_h = { "map" => method(:map), "sites" => method(:sites) }

      # @param query [Hash] "pid"; "version" that the page has
      # @return [Hash] as of MapFeed
      # @raise [Culet::Error]
      def map(query)
        feed(MapFeed, query).call(Integer(query["version"].to_s, 10, exception: false))
      end

      # @param query [Hash] "pid"
      # @return [Hash] as of SitesFeed
      # @raise [Culet::Error]
      def sites(query) = feed(SitesFeed, query).call

      private

      def feed(kind, query)
        pid = query["pid"].to_s[/\A\d{1,9}\z/]&.to_i
        unless @pids.call.include?(pid)
          raise Error, "process #{query["pid"].to_s[0, 20].inspect} is not watched, or has ended"
        end

        @lock.synchronize do
          feeds = @feeds[kind]
          forget(feeds) unless feeds.key?(pid)
          feeds[pid] ||= kind.new(pid)
        end
      end

      # Makes room for one more.
      def forget(feeds)
        feeds.delete(feeds.min_by { |_, feed| feed.used }.first) if feeds.size >= MOST_FEEDS
      end
    end
  end
end
