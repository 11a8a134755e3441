# frozen_string_literal: true

require_relative "columns"

module Culet
  module Top
    # The state that keys change: order, filter, tree or list, pause, help, and the visible rows.
    class State
      # A longer filter was pasted by mistake.
      MOST_FILTER = 100
      # Titles are scrolled sideways by so many characters, and no further than the longest.
      SHIFT = 8
      MOST_SHIFT = 64
      private_constant :MOST_FILTER, :SHIFT, :MOST_SHIFT

      # @return [Symbol] name of the column that decides about the order; :title for the title
      attr_reader :sort

      # @return [String] text that title or number of a process must contain; "": every process
      attr_reader :filter

      # @return [Integer] rows that are scrolled away above
      attr_reader :offset

      # @return [Integer] characters of the titles that are scrolled away on the left
      attr_reader :shift

      def initialize
        @sort = :pss
        @filter = ""
        @offset = @shift = 0
        @total = @room = 0
        @reversed = @editing = @paused = @help = false
        @tree = true
      end

      # @return [Boolean] whether the largest value comes first
      def descending? = (Columns.find(@sort)&.descending? || false) ^ @reversed

      # @return [Boolean] whether children stand below their parents
      def tree? = @tree

      # @return [Boolean] whether the moment shown stays
      def paused? = @paused

      # @return [Boolean] whether keys are typed into the filter
      def editing? = @editing

      # @return [Boolean] whether the help is shown
      def help? = @help

      # Keeps the offset within the list that is about to be shown.
      #
      # @param total [Integer] rows of the list
      # @param room [Integer] rows of the screen for them
      # @return [Integer] the offset
      def scroll_within(total, room)
        @total = total
        @room = room
        @offset = @offset.clamp(0, [total - room, 0].max)
      end

      # @param key [Symbol, String] a key's name, or a character
      # @param sortable [Array<Symbol>] the columns that are shown
      # @return [Symbol, nil] :quit when the view is to end
      def press(key, sortable:)
        return edit(key) if editing?
        return leave_help(key) if help?

        case key
        when "q", "Q" then return :quit
        when "h", "?" then open_help
        when "/" then @editing = true
        when "<", "S" then sort_by(sortable, -1)
        when ">", "s" then sort_by(sortable, 1)
        when "r" then @reversed = !@reversed
        when "t" then @tree = !@tree
        when " " then @paused = !@paused
        when :left, :right then @shift = (@shift + (key == :left ? -SHIFT : SHIFT)).clamp(0, MOST_SHIFT)
        when :escape then @filter = ""
        else scroll(key)
        end
        nil
      end

      private

      def edit(key)
        case key
        when :enter then @editing = false
        when :escape
          @filter = ""
          @editing = false
        when :backspace then @filter = @filter[0...-1]
        when String then @filter += key if @filter.size < MOST_FILTER
        else scroll(key)
        end
        nil
      end

      def open_help
        @help = true
        @behind = @offset
        @offset = 0
      end

      def leave_help(key)
        return if scroll(key)

        @help = false
        @offset = @behind
        nil
      end

      # A column may have gone with the width of the terminal.
      def sort_by(sortable, step)
        at = sortable.index(@sort) || 0
        @sort = sortable[(at + step) % sortable.size]
        @reversed = false
      end

      # @return [Integer, nil] the offset; nil for a key that does not scroll
      def scroll(key)
        step = { up: -1, down: 1, "k" => -1, "j" => 1, page_up: -@room, page_down: @room,
                 home: -@offset, end: @total }[key]
        scroll_to(@offset + step) if step
      end

      def scroll_to(offset) = @offset = offset.clamp(0, [@total - @room, 0].max)
    end
  end
end
