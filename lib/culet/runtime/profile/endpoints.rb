# frozen_string_literal: true

module Culet
  module Profile
    # The labels of paths. Clients choose the paths, and the profile never forgets a label, so only some paths have
    # their own label: the first ones at once, further ones when they are frequent. All others share one label, as do
    # paths that were answered only with 404.
    #
    # Frequent paths are found by the space-saving algorithm (Metwally, Agrawal, El Abbadi: Efficient Computation of
    # Frequent and Top-k Elements in Data Streams, ICDT 2005): with MOST entries, each path that makes more than one of
    # MOST requests is among them. Counts are halved at intervals, so that paths without requests leave the table.
    class Endpoints
      # The label of all other paths.
      OTHER = "other"
      # The maximum number of counted paths, and of labels that are given at once.
      MOST = 1000
      # Requests that a later path needs for a label. The number doubles with each STEP labels, so that a client cannot
      # fill the profile's table of 10,000 label sets (ext/culet/profile/labels.c).
      NEEDED = 2
      STEP = 500
      private_constant :MOST, :NEEDED, :STEP

      # count: at least the requests since the last halving, and at most `error` more; route: nil if none is known
      Entry = Struct.new(:path, :count, :error, :route)
      private_constant :Entry

      # @param age [Integer] requests from one halving of the counts to the next
      def initialize(age: 1_000_000)
        @age = age
        @lock = Mutex.new
        @entries = {}
        @ranks = Hash.new { |ranks, count| ranks[count] = {} } # by count, the entries, the oldest first
        @least = 1 # the smallest count
        @labels = {} # of each path that ever had one of its own: the path, or OTHER
        @requests = 0
      end

      # @param path [String] in its general form, e.g. "GET /issues/:id"
      # @return [String] the label of a request
      def label(path)
        @lock.synchronize do
          @entries[path]&.route || @labels[path] || (@labels.size < MOST ? @labels[path] = path : OTHER)
        end
      end

      # Counts a request that was answered.
      #
      # @param path [String] as for `label`
      # @param route [String, nil] the application's name for the path, its label from then on
      def found(path, route = nil)
        @lock.synchronize do
          halve if (@requests += 1) == @age
          entry = count(path)
          next entry.route = route if route

          @labels[path] = path if @labels.key?(path) || entry.count - entry.error >= needed
        end
      end

      # Records a request that was answered with 404.
      #
      # @param path [String] as for `label`
      def missing(path)
        @lock.synchronize { @labels[path] = OTHER if @labels.key?(path) && !@entries.key?(path) }
      end

      private

      def needed = NEEDED << ([@labels.size - MOST, 0].max / STEP)

      def count(path)
        entry = @entries[path]
        return rank(entry, entry.count) if entry
        return start(path) if @entries.size < MOST

        entry = @ranks[@least].first.last
        @entries.delete(entry.path)
        @ranks[@least].delete(entry.path)
        rank(@entries[path] = Entry.new(path, @least, @least), @least)
      end

      def start(path)
        @least = 1
        @entries[path] = @ranks[1][path] = Entry.new(path, 1, 0)
      end

      # Raises the count of an entry by one.
      def rank(entry, from)
        @ranks[from].delete(entry.path)
        if @ranks[from].empty?
          @ranks.delete(from)
          @least = from + 1 if from == @least
        end
        entry.count = from + 1
        @ranks[entry.count][entry.path] = entry
      end

      def halve
        @requests = 0
        @ranks.clear
        @entries.each_value do |entry|
          entry.count = [entry.count / 2, 1].max
          entry.error /= 2
          @ranks[entry.count][entry.path] = entry
        end
        @least = @ranks.keys.min
      end
    end
  end
end
