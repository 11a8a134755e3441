# frozen_string_literal: true

require_relative "../origin"
require_relative "frame"
require_relative "symbols"

module Culet
  module Profile
    # Makes the frames of a recording's stacks.
    class Stacks
      MARK = 2
      MARKS = { 1 => "(more frames)", 2 => "(in garbage collection)", 3 => "(without the GVL)", 4 => "(Ruby starts)",
                5 => "(stack not recorded)", 6 => "(in a signal handler)", 7 => "(deferred work of Ruby)" }.freeze
      # culet's own code in a process: the extensions and the allocator.
      EXTENSION = "culet.so"
      LIBRARIES = ["libculet.so", EXTENSION, "culet_boot.so"].freeze
      # Libraries whose functions allocate for their caller.
      PASSING = /#{RUBY_LIBRARY}|\A(?:libc\.|libc-|libpthread|ld-|ld\.)/
      # Methods that the extension replaces, and that run the program's code.
      REPLACED = /[#.](?:require|require_relative|load|autoload)\z/
      # The command line is a program of its own: of these folders a program loads nothing to run with.
      PROGRAM = %r{/(?:allocators|benchmark|cli|model|render|tools)/}
      # The outermost frame of what culet itself has allocated in a process.
      OWN = Frame.new(nil, nil, "culet itself", nil, nil, true)
      # The function by which Ruby calls the extension, and the frames up to it.
      HOOK = "rb_exec_event_hooks"
      HOOK_FRAMES = 8
      # Functions of Ruby that allocate for their caller (gc.c, gc/default/default.c, gc/mmtk, util.c).
      WRAPPERS = %w[
        rb_gc_impl_malloc rb_gc_impl_calloc rb_gc_impl_realloc
        objspace_xmalloc0 objspace_xcalloc objspace_xrealloc
        ruby_xmalloc ruby_xmalloc2 ruby_xcalloc ruby_xrealloc ruby_xrealloc2
        ruby_xmalloc_body ruby_xmalloc2_body ruby_xcalloc_body ruby_xrealloc_body ruby_xrealloc2_body
        ruby_xrealloc_sized ruby_xrealloc2_sized ruby_xrealloc_sized_body ruby_xrealloc2_sized_body
        ruby_sized_xrealloc ruby_sized_xrealloc2 ruby_mimmalloc ruby_mimcalloc ruby_strdup
        rb_xmalloc_mul_add rb_xcalloc_mul_add rb_xrealloc_mul_add rb_xmalloc_mul_add_mul rb_xcalloc_mul_add_mul
        rb_alloc_tmp_buffer rb_alloc_tmp_buffer_with_count
        rb_gc_event_hook gc_event_hook_body newobj_init newobj_of newobj_of0 newobj_alloc rb_gc_impl_new_obj rb_newobj
        newobj_slowpath newobj_slowpath_wb_protected newobj_slowpath_wb_unprotected newobj_zero_slot
        rb_newobj_of rb_wb_protected_newobj_of rb_wb_unprotected_newobj_of
      ].freeze
      # Suffixes of functions that a compiler has changed.
      VARIANT = /\.(?:isra|part|cold|constprop|lto_priv|llvm)\b.*/
      # The path that Ruby gives for methods in C.
      CFUNC = "<cfunc>"
      # The function of Ruby that runs deferred work.
      DEFERRED = ["rb_postponed_job_flush"].freeze
      UNKNOWN = Frame.new(nil, nil, "(unknown)", nil, nil, true)
      private_constant :MARK, :MARKS, :EXTENSION, :LIBRARIES, :PASSING, :REPLACED, :PROGRAM, :HOOK,
                       :HOOK_FRAMES, :WRAPPERS, :VARIANT, :CFUNC, :DEFERRED, :UNKNOWN

      # @return [Boolean] whether culet itself has allocated there
      def self.own?(frames) = frames.last.equal?(OWN)

      # @return [Boolean] whether it is deferred work of Ruby, which the code that ran has not asked for
      def self.deferred?(frames) = frames.any? { |frame| frame.remark && frame.method == MARKS.fetch(7) }

      # @return [Boolean] whether Ruby itself allocated it for its heap: growth there follows from other growth
      def self.collector?(frames)
        deferred?(frames) || frames.any? { |frame| frame.remark && frame.method == MARKS.fetch(2) }
      end

      # @param files [Hash] symbol tables that several recordings share
      def initialize(recording, files = {})
        @recording = recording
        @symbols = Symbols.new(recording.mappings, files)
        @space = nil
        @frames = {}
        @stacks = {}
        @origins = {}
        extension = recording.mappings.find { |mapping| File.basename(mapping.path) == EXTENSION }
        @folder = "#{File.dirname(extension.path)}/" if extension
      end

      # @param space [AddressSpace]
      # @return [Stacks] of the same recording, with the address of each native frame
      def with_addresses(space) = dup.tap { |copy| copy.locate(space) }

      # @param stack [Integer]
      # @param kind [Symbol] :malloc or :object
      # @return [Array<Frame>] innermost first
      def frames(stack, kind = :malloc)
        @stacks[[stack, kind]] ||= begin
          words = @recording.stack(stack)
          found = words.each_with_index.map { |word, at| frame(word, innermost: at.zero?) }
          found = without_wrappers(without_sampler(without_compiled(found), kind))
          own = own_frames(found)
          found = own ? [*found.first(own), OWN] : without_bystanders(found)
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

      # The allocator's functions, and of a sampled object those of the extension and of Ruby up to the hook.
      def without_sampler(frames, kind)
        frames = frames.drop_while { |frame| frame.library == LIBRARIES.first }
        return frames unless kind == :object && frames.first&.library == EXTENSION

        hook = frames.first(HOOK_FRAMES).index { |frame| frame.method == HOOK }
        frames.drop(hook ? hook + 1 : 0).drop_while { |frame| frame.library == EXTENSION }
      end

      # Code that a compiler of Ruby has made is in no library, and the Ruby frame that it runs is the next one.
      def without_compiled(frames)
        interpreted = false
        frames.reverse_each.reject do |frame|
          interpreted = frame.interpreted? unless compiled?(frame)
          interpreted && compiled?(frame)
        end.reverse
      end

      def compiled?(frame) = frame.library.nil? && frame.method == Symbols::UNKNOWN

      def without_wrappers(frames)
        wrappers = frames.take_while { |frame| wrapper?(frame) }.size
        wrappers == frames.size ? frames : frames.drop(wrappers)
      end

      def wrapper?(frame) = frame.ruby_library? && WRAPPERS.include?(frame.method.sub(VARIANT, ""))

      # @return [Integer, nil] number of the frames up to the innermost one of culet's code, if the functions and
      #   methods inside of it allocate for their caller
      def own_frames(frames)
        at = frames.index { |frame| !passing?(frame) }
        return unless at && own?(frames[at])

        at + 1 unless frames[at].library && REPLACED.match?(frames.drop(at).find(&:interpreted?)&.method.to_s)
      end

      def passing?(frame)
        return PASSING.match?(frame.library) if frame.library

        compiled?(frame) || (frame.interpreted? && !frame.ruby?)
      end

      def own?(frame)
        return LIBRARIES.include?(frame.library) if frame.library

        frame.ruby? && !@folder.nil? && frame.file.start_with?(@folder) && !PROGRAM.match?(frame.file)
      end

      # Ruby does deferred work (moving buffers after a collection, for example) wherever it checks for interrupts: the
      # code that runs at that moment has not asked for it.
      def without_bystanders(frames)
        at = frames.index { |frame| !frame.library || DEFERRED.include?(frame.method) }
        return frames unless at && frames[at].library

        [*frames.first(at + 1), @deferred ||= Frame.new(nil, nil, MARKS.fetch(7), nil, nil, true)]
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
          origin = Origin.of(path)
          @origins[path] = origin == Origin::APPLICATION ? nil : origin
        end
      end
    end
  end
end
