# frozen_string_literal: true

module Culet
  module Profile
    # The labels of paths. Paths come from outside, and the profile never forgets a label, so that only some have one of
    # their own: the first ones at once, further ones when they are frequent. The others share one, and so do those that
    # have been answered with nothing but 404.
    #
    # Frequent paths are found by the space-saving algorithm (Metwally, Agrawal, El Abbadi: Efficient Computation of
    # Frequent and Top-k Elements in Data Streams, ICDT 2005): with MOST entries, each path that makes more than one of
    # MOST requests is among them. Counts are halved now and then, so that what is not requested any more gives way.
    class Endpoints
      # The label of all other paths.
      OTHER = "other"
      # Paths that are counted; and labels that are given at once.
      MOST = 1000
      # Requests after which a path has a label later. They double with each further STEP labels, so that even who knows
      # this does not fill the profile's table of 10,000 label sets (ext/culet/profile/labels.c).
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
      # @param route [String, nil] the application's name for it, which is the label from then on
      def found(path, route = nil)
        @lock.synchronize do
          halve if (@requests += 1) == @age
          entry = count(path)
          next entry.route = route if route

          @labels[path] = path if @labels.key?(path) || entry.count - entry.error >= needed
        end
      end

      # A request was answered with 404.
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
