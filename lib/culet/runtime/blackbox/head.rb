# frozen_string_literal: true

module Culet
  module BlackBox
    # The head of a black box, which describes its process: lines "name value".
    #
    # @api private
    module Head
      MAGIC = "culet-blackbox 1"
      # Of a value.
      MOST_BYTES = 400
      # Of all.
      ROOM = 2000
      private_constant :MAGIC, :MOST_BYTES, :ROOM

      module_function

      # @param files [Array<String, nil>] of MemoryGroup.files
      def text(files)
        values = process.merge("group_used" => files[0], "group_limit" => files[1], "group_kills" => files[3])
        lines = values.filter_map { |name, value| "#{name} #{clean(value)}\n" if value }
        [MAGIC, "\n", *lines].join.byteslice(0, ROOM).scrub("?")
      end

      def process
        { "pid" => ::Process.pid, "parent" => ::Process.ppid, "program" => $PROGRAM_NAME, "boot" => boot,
          "ruby" => RUBY_VERSION, "culet" => VERSION, "allocator" => Culet.allocator[:name] }
      end

      def boot
        File.read("/proc/sys/kernel/random/boot_id").strip
      rescue SystemCallError
        nil
      end

      def clean(value) = value.to_s.b.byteslice(0, MOST_BYTES).gsub(/[[:cntrl:]]/n, "?")

      private_class_method :process, :boot, :clean
    end
  end
end
