# frozen_string_literal: true

module Culet
  module Profile
    # The data of the page: strings, frames, the tree of stacks, sites, and the sums of each site in each view, as
    # columns of numbers.
    class PageData
      VIEWS = %i[live allocated peak growth].freeze

      # Key in the page, title, heading of the names; the labels follow.
      GROUPS = [[:line, "By line", "line"], [:gem, "By gem", "gem"], [:class, "By class", "class"],
                [:library, "By library", "library"]].freeze

      # Index of a frame's kind in the list of profile.js.
      KINDS = %i[application gem ruby library class unknown].each_with_index.to_h.freeze
      # Significant digits of estimates.
      DIGITS = 6
      # Values of labels of all sites.
      MOST_CELLS = 4_000_000

      private_constant :KINDS, :DIGITS, :MOST_CELLS

      # @param view [Symbol] the view that the page opens with
      # @param base [Data, nil] the earlier profile of a comparison
      def initialize(data, view:, base: nil)
        @data = data
        @view = view
        @base = base
        # Each numbers its keys in the order of their arrival.
        @strings, @frames, @sites = Array.new(3) { Hash.new { |numbers, key| numbers[key] = numbers.size } }
        @frame_numbers = {}.compare_by_identity
        @parents = [-1]
        @node_frames = [-1]
        @children = {}
      end

      # @return [Hash]
      def to_h
        views = columns(@data)
        base_views = @base && columns(@base)
        { "view" => @view, "sample_bytes" => @data.sample_bytes, "views" => views, "base_views" => base_views,
          "stacks" => { "parent" => @parents, "frame" => @node_frames },
          "sites" => { "node" => @sites.keys.map(&:first) }, "frames" => frame_columns, "groups" => groups,
          "strings" => @strings.keys }
      end

      private

      def string(text) = text.nil? || text.empty? ? -1 : @strings[text]

      def columns(data)
        VIEWS.to_h do |view|
          sites = data.sites(view)
          [view, { "site" => sites.map { |site| number(site) }, "samples" => sites.map(&:samples),
                   "bytes" => sites.map { |site| rounded(site.bytes) },
                   "blocks" => sites.map { |site| rounded(site.blocks) },
                   "variance" => sites.map { |site| rounded(site.variance) } }]
        end
      end

      # An Integer above 100,000: shorter as text than "123456.0".
      def rounded(value)
        value = value.to_f
        return 0 unless value.finite? && !value.zero?

        value.round(DIGITS - 1 - Math.log10(value.abs).floor)
      end

      def number(site)
        frames = site.frames
        node = frames.reverse_each.reduce(0) { |parent, frame| child(parent, frame_number(frame)) }
        node = child(node, @frames[[site.class_name, nil, 0, nil, nil, KINDS[:class]]]) if site.class_name
        @sites[[node, *GROUPS.map { |key, _, _| site.names(key).first }, site.labels.to_a]]
      end

      def child(parent, frame)
        @children[(parent << 32) | frame] ||= begin
          @parents << parent
          @node_frames << frame
          @parents.size - 1
        end
      end

      def frame_number(frame)
        @frame_numbers[frame] ||= @frames[[frame.method, frame.file, frame.line.to_i, frame.gem, frame.library,
                                           KINDS[frame.kind]]]
      end

      def frame_columns
        rows = @frames.keys
        names = %w[method file line gem library kind]
        names.each_with_index.to_h do |name, at|
          [name, rows.map { |row| %w[line kind].include?(name) ? row[at] : string(row[at]) }]
        end
      end

      def groups
        rows = @sites.keys
        labels = labels(rows)
        columns = GROUPS.each_with_index.map { |names, at| group(*names, rows.map { |row| row[at + 1] }) }
        pairs = rows.map { |row| row.last.to_h }
        columns + labels.map { |name| group("label #{name}", "By #{name}", name, pairs.map { |row| row[name] }) }
      end

      # Each has a value for each site, so of very many those that most sites have.
      def labels(rows)
        counts = rows.flat_map { |row| row.last.map(&:first) }.tally
        counts.keys.max_by(MOST_CELLS / [rows.size, 1].max + 1) { |name| counts[name] }.sort
      end

      def group(key, title, noun, values)
        { "key" => key, "title" => title, "noun" => noun, "of" => values.map { |value| string(value) } }
      end
    end
  end
end
