# frozen_string_literal: true

require_relative "../../model/profile"
require_relative "pprof"

module Culet
  module Profile
    # The profile of an interval of time: what was allocated between two recordings of the same processes, and what was
    # in use at the later one.
    class Interval < Data
      # @param before [Array<Recording>] at the start of the interval
      # @param found [Array<Recording>] at its end, at least one
      # @param from [Time] start
      # @param to [Time] end
      def initialize(before, found, from, to)
        super(found)
        @from = from
        @to = to
        earlier = before.to_h { |recording| [identity(recording), recording] }
        before_found = found.filter_map { |recording| earlier[identity(recording)] }
        @change = Difference.new(Data.new(found), Data.new(before_found))
      end

      # @param view [Symbol, String] one of VIEWS; :allocated is limited to the interval
      # @return [Array<Site>] the largest first
      def sites(view)
        return super unless view.to_sym == :allocated

        @sites[:allocated] ||= @change.sites(:allocated).select { |site| site.bytes.positive? }
      end

      # @return [String] a gzipped pprof
      def pprof = Pprof.new(self, view: :live, from: @from, to: @to).to_s

      protected

      def locate(space)
        super
        @change = @change.with_addresses(space)
      end

      private

      # A profile that was started again, or another process with the number, starts from zero.
      def identity(recording) = [recording.pid, recording.started_at, recording.generation]
    end
  end
end
