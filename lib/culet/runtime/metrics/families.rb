# frozen_string_literal: true

module Culet
  module Metrics
    # A metric: its name in Prometheus, its type (:gauge, :counter, :info), a sentence, its name in OpenTelemetry, and
    # the kind of its instrument there, :up_down_counter where the semantic conventions say so.
    Family = Struct.new(:name, :type, :help, :otel_name, :otel_kind) do
      # @return [String] the unit in the name, or ""
      def unit = name.delete_suffix("_total")[/_(bytes|seconds|ratio)\z/, 1].to_s

      # @return [String] the unit as OpenTelemetry writes it
      def otel_unit = { "bytes" => "By", "seconds" => "s" }.fetch(unit, "1")
    end

    # Each metric by its name, in the order of the text.
    FAMILIES = [
      [:gauge, "process_resident_memory_bytes", "Resident memory.", "process.memory.usage", :up_down_counter],
      [:gauge, "process_virtual_memory_bytes", "Virtual memory.", "process.memory.virtual", :up_down_counter],
      [:counter, "process_cpu_seconds_total", "User and system CPU time.", "process.cpu.time"],
      [:gauge, "process_threads", "Threads.", "process.thread.count", :up_down_counter],
      [:gauge, "process_start_time_seconds", "When the process was started or forked, in seconds since 1970.",
       "culet.process.start_time"],
      [:info, "culet_process_info", "Versions of Ruby and culet, and the allocator that serves malloc.",
       "culet.process.info"],
      [:gauge, "culet_process_proportional_memory_bytes",
       "Resident memory in which a page counts by the share of each process that has it (PSS).",
       "culet.process.memory.proportional"],
      [:gauge, "culet_process_private_memory_bytes", "Resident memory that no other process shares (USS).",
       "culet.process.memory.private"],
      [:gauge, "culet_process_shared_memory_bytes", "Resident memory that other processes share.",
       "culet.process.memory.shared"],
      [:gauge, "culet_process_copy_on_write_shared_ratio",
       "Of the anonymous memory of the process, the part that is still shared with its parent or siblings.",
       "culet.process.memory.copy_on_write_shared"],
      [:gauge, "culet_process_sharing_age_seconds",
       "Age of the figures of proportional, private and shared memory.", "culet.process.memory.sharing_age"],
      [:gauge, "culet_process_report_age_seconds", "Age of the figures that the process itself reports.",
       "culet.process.report_age"],
      [:gauge, "culet_memory_level_bytes",
       "Resident memory by use, estimated without a pause; culet report is exact.",
       "culet.memory.level"],
      [:gauge, "culet_malloc_memory_bytes",
       "Heap of the allocator by state: used, free, returned to the kernel, cached.", "culet.malloc.memory"],
      [:counter, "culet_malloc_returned_bytes_total", "Memory that the allocator returned to the kernel.",
       "culet.malloc.returned"],
      [:gauge, "culet_malloc_arenas", "Arenas of the allocator.", "culet.malloc.arenas"],
      [:gauge, "ruby_gc_heap_slots", "Slots of Ruby's heap by state: live, free.", "ruby.gc.heap.slots"],
      [:counter, "ruby_gc_collections_total", "Garbage collections by type: minor, major.", "ruby.gc.collections"],
      [:counter, "ruby_gc_time_seconds_total", "Time of garbage collections.", "ruby.gc.time"],
      [:counter, "ruby_gc_allocated_objects_total", "Ruby objects allocated.", "ruby.gc.allocated_objects"],
      [:counter, "culet_trims_total", "Trims carried out.", "culet.trims"],
      [:counter, "culet_trims_skipped_total", "Trims left out because there was little to return.",
       "culet.trims.skipped"],
      [:counter, "culet_trim_returned_bytes_total", "Resident memory that trims returned.", "culet.trim.returned"],
      [:counter, "culet_trim_seconds_total", "Time of trims.", "culet.trim.time"],
      [:gauge, "culet_profile_site_bytes", "Memory in use that a site of the profile allocated, by its rank.",
       "culet.profile.site"],
      [:info, "culet_profile_site_info", "The code and the class of the site with that rank.",
       "culet.profile.site.info"],
      [:gauge, "culet_limit_bytes", "The memory limit that culet/limit keeps.", "culet.limit"],
      [:gauge, "culet_limit_used_bytes", "Memory that counts towards the limit.", "culet.limit.used"],
      [:gauge, "culet_limit_headroom_bytes", "Memory left below the limit.", "culet.limit.headroom"],
      [:counter, "culet_memory_pressure_seconds_total",
       "Time in which tasks of the control group, or of the host, waited for memory: some or all (full) of them.",
       "culet.memory.pressure"]
    ].to_h { |type, name, help, otel, kind| [name, Family.new(name, type, help, otel, kind || type).freeze] }.freeze
  end
end
