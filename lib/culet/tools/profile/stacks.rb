# frozen_string_literal: true

require_relative "../requires/origin"
require_relative "frame"
require_relative "symbols"

module Culet
  module Profile
    # Makes the frames of a recording's stacks.
    class Stacks
      MARK = 2
      MARKS = { 1 => "(more frames)", 2 => "(in garbage collection)", 3 => "(without the GVL)", 4 => "(Ruby starts)",
                5 => "(stack not recorded)", 6 => "(in a signal handler)" }.freeze
      # The functions of the allocator, and of the extension that samples objects, say nothing.
      OWN = ["libculet.so", "culet.so"].freeze
      # The function by which Ruby calls the extension, and the frames up to it.
      HOOK = "rb_exec_event_hooks"
      HOOK_FRAMES = 8
      # The path that Ruby gives for methods in C.
      CFUNC = "<cfunc>"
      # The function of Ruby that runs deferred work.
      DEFERRED = ["rb_postponed_job_flush"].freeze
      UNKNOWN = Frame.new(nil, nil, "(unknown)", nil, nil, true)
      private_constant :MARK, :MARKS, :OWN, :HOOK, :HOOK_FRAMES, :CFUNC, :DEFERRED,
                       :UNKNOWN

      # @param recording [Recording]
      # @param files [Hash] symbol tables that several recordings share
      def initialize(recording, files = {})
        @recording = recording
        @symbols = Symbols.new(recording.mappings, files)
        @space = nil
        @frames = {}
        @stacks = {}
        @origins = {}
      end

      # @param space [AddressSpace]
      # @return [Stacks] of the same recording, with the address of each native frame
      def with_addresses(space)
        dup.tap { |copy| copy.locate(space) }
      end

      # @param stack [Integer]
      # @return [Array<Frame>] innermost first
      def frames(stack)
        @stacks[stack] ||= begin
          words = @recording.stack(stack)
          found = words.each_with_index.map { |word, at| frame(word, innermost: at.zero?) }
          found = without_bystanders(without_sampler(found))
          (found.empty? ? [UNKNOWN] : found).freeze
        end
      end

      protected

      def locate(space)
        @space = space
        @frames = {}
        @stacks = {}
      end

      private

      def without_sampler(frames)
        return frames unless OWN.include?(frames.first&.library)

        hook = frames.first(HOOK_FRAMES).index { |frame| frame.method == HOOK }
        frames.drop(hook ? hook + 1 : 0).drop_while { |frame| OWN.include?(frame.library) }
      end

      # Ruby does deferred work (moving buffers after a collection, for example) wherever it checks for interrupts: the
      # code that runs at that moment has not asked for it.
      def without_bystanders(frames)
        at = frames.index { |frame| !frame.library || DEFERRED.include?(frame.method) }
        return frames unless at && frames[at].library

        [*frames.first(at + 1), @deferred ||= Frame.new(nil, nil, "(deferred work of Ruby)", nil, nil, true)]
      end

      # A return address is behind the call.
      def frame(word, innermost:)
        case word >> Recording::WORD_SHIFT
        when Recording::RUBY then @frames[word] ||= ruby(word)
        when MARK then @frames[word] ||= Frame.new(nil, nil, MARKS.fetch(word & 255, "(unknown)"), nil, nil, true)
        else
          address = innermost ? word : word - 1
          @frames[address] ||= native(address)
        end
      end

      def native(address)
        name, library = @symbols.name(address)
        place = @space&.locate(@symbols.mapping(address), address)
        Frame.new(nil, nil, name, nil, library, nil, *place)
      end

      def ruby(word)
        found = @recording.frames[(word >> Recording::FRAME_SHIFT) & Recording::FRAME_MASK]
        return UNKNOWN unless found

        line = word & 0xffffff
        path = found.path unless ["", CFUNC].include?(found.path)
        Frame.new(path, path && (line.zero? ? found.line : line), found.label, path && gem(path), nil)
      end

      def gem(path)
        @origins.fetch(path) do
          origin = Requires::Origin.of(path)
          @origins[path] = origin == Requires::Origin::APPLICATION ? nil : origin
        end
      end
    end
  end
end
