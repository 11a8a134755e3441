# frozen_string_literal: true

require_relative "../../render/html_page"
require_relative "../../text/numbers"
require_relative "page_data"

module Culet
  module Profile
    # The profile as a page.
    class Html < HtmlPage
      FOLDER = File.expand_path("page", __dir__)
      SCRIPTS = [*EXPLORING, "profile", "text", "colours", "groups", "main"].freeze
      VIEWS = { live: ["Live", "in use when the profile was taken"],
                allocated: ["Allocated", "since the profile started, freed or not"],
                peak: ["Peak", "live at the highest resident size"],
                growth: ["Growth", "live after three major collections or more"] }.freeze
      Card = Struct.new(:key, :title, :meaning, :bytes, :interval, :change)
      private_constant :VIEWS, :Card

      # @param view [Symbol, String] the view that the page opens with: live, allocated, peak or growth
      # @param base [Data, nil] the earlier profile of a comparison
      def initialize(data, view:, base: nil)
        super()
        @data = data
        @view = view.to_sym
        @base = base
      end

      private

      def data = PageData.new(@data, view: @view, base: @base).to_h

      def title
        earlier = names(@base) if @base
        return "Memory profile of #{names(@data)}" unless earlier

        "Memory profile of #{names(@data)}, compared with #{earlier == names(@data) ? "an earlier one" : earlier}"
      end

      # "app.rb (12)", or the first of several.
      def names(data)
        list = data.recordings.map(&:name)
        list.size > 2 ? "#{list.first} and #{list.size - 1} other processes" : list.join(" and ")
      end

      def lead
        sentences = [moment(@data)]
        sentences << "Compared with #{moment(@base)}" if @base
        sentences << "One sample per #{size(@data.sample_bytes)} on average."
        sentences << "#{count(@data.lost, "sample")} found no room." if @data.lost.positive?
        sentences.join(" ")
      end

      def moment(data)
        taken = data.recordings.map(&:taken_at).max
        seconds = data.recordings.map { |one| one.taken_at - one.started_at }.max
        "#{taken.strftime("%Y-%m-%d %H:%M:%S")}, #{duration(seconds)} after the profile started."
      end

      def duration(seconds)
        return "#{Text::Numbers.significant(seconds)} s" if seconds < 120

        seconds < 7200 ? "#{(seconds / 60).round} min" : "#{Text::Numbers.significant(seconds / 3600)} h"
      end

      def cards
        VIEWS.map do |key, (title, meaning)|
          total = @data.total(key)
          empty = @data.sites(key).empty?
          Card.new(key, title, meaning, empty ? "no samples" : size(total.bytes), empty ? nil : "95 %: #{range(total)}",
                   change(key, total))
        end
      end

      def change(view, total)
        return unless @base

        before = @base.total(view).bytes
        return if before.zero? && total.bytes.zero?
        return "unchanged" if size(before) == size(total.bytes)

        "#{total.bytes < before ? "−" : "+"}#{size((total.bytes - before).abs)} from #{size(before)}"
      end

      def range(row)
        low, high = [row.low_bytes, row.high_bytes].map { |bytes| size(bytes) }
        unit = high[/ \S+\z/]
        "#{unit ? low.delete_suffix(unit) : low} to #{high}"
      end
    end
  end
end
