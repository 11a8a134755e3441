# frozen_string_literal: true

require "objspace"

module Culet
  module Limits
    # The memory that the calls of a block leave behind, and the lines that allocated it.
    module KeptMemory
      # Kept memory of one line and kind. name: the line; kind: the class, or the native function; objects:
      # their number, nil for malloc; bytes: with the buffers of objects. Both are per call.
      Row = Struct.new(:name, :kind, :objects, :bytes, keyword_init: true)
      # The first collection frees neither objects with finalizers nor objects on stale slots of the stack.
      COLLECTIONS = 3
      MOST_ROWS = 3
      # Minimum share of a row in the growth.
      LEAST_SHARE = 0.1
      private_constant :COLLECTIONS, :MOST_ROWS, :LEAST_SHARE

      module_function

      # Objects by class and line, as Ruby records them; without those of Ruby's own, such as compiled code.
      #
      # @param calls [Integer]
      # @param per_call [Float] bytes by which memory grows
      # @yield the work
      # @return [Array<Row>] the largest first
      def objects(calls, per_call, &work)
        ObjectSpace.trace_object_allocations { run(calls, work) }
        rows = by_origin.map do |(place, type), (number, bytes)|
          Row.new(name: place, kind: class_name(type), objects: number.fdiv(calls), bytes: bytes.fdiv(calls))
        end
        largest(rows, per_call)
      ensure
        ObjectSpace.trace_object_allocations_clear
      end

      # Blocks of malloc by line and function, by the memory profile. Sampled, with a standard error of a sixth.
      #
      # @param calls [Integer]
      # @param per_call [Float] bytes by which memory grows
      # @yield the work
      # @return [Array<Row>, nil] the largest first; nil: the profile does not see malloc in this process, or is in use
      def blocks(calls, per_call, &work)
        return unless Culet.native? && Culet.allocator[:active]

        require_relative "../../profile"
        return if Profile.running?

        sites = profiled(distance(per_call * calls)) { run(calls, work) }
        sites = sites.select { |site| site.kind == :malloc && !site.own? && !site.collector? }
        rows = sites.group_by { |site| [site.place, function(site)] }.map do |(place, function), group|
          Row.new(name: place, kind: function, bytes: group.sum(&:bytes).fdiv(calls))
        end
        largest(rows, per_call)
      end

      def run(calls, work)
        calls.times { work.call }
        COLLECTIONS.times { GC.start }
      end

      def by_origin
        sums = Hash.new { |hash, key| hash[key] = [0, 0] }
        ObjectSpace.each_object(BasicObject) do |object|
          file = ObjectSpace.allocation_sourcefile(object) or next
          sum = sums[["#{file}:#{ObjectSpace.allocation_sourceline(object)}", CLASS.bind_call(object)]]
          sum[0] += 1
          sum[1] += ObjectSpace.memsize_of(object)
        end
        sums
      end

      def class_name(type) = NAME.bind_call(type) || "(class without a name)"

      CLASS = Kernel.instance_method(:class)
      NAME = Module.instance_method(:name)
      private_constant :CLASS, :NAME

      # Forty samples of what grows.
      def distance(bytes) = (bytes / 40).round.clamp(64, 512 << 10)

      def profiled(sample_bytes)
        Profile.start(sample_bytes: sample_bytes)
        begin
          yield
          stream = Profile.send(:stream)
        ensure
          Profile.stop
        end
        require_relative "../../model/profile"
        Profile::Data.new([Profile::Recording.new(stream, name: "this process")]).sites(:live)
      end

      # The native function that called malloc, unless it is Ruby's own.
      def function(site)
        frame = site.frames.find(&:library)
        frame unless frame.nil? || frame.ruby_library?
      end

      def largest(rows, per_call)
        rows.select { |row| row.bytes >= LEAST_SHARE * per_call }.max_by(MOST_ROWS, &:bytes)
      end

      private_class_method :run, :by_origin, :class_name, :distance, :profiled, :function, :largest
    end
  end
end
