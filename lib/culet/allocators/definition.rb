# frozen_string_literal: true

module Culet
  module Allocators
    # One setting of one allocator: `key` as written after the colon, the
    # environment variable (or glibc tunable) it becomes, and the values it takes.
    Setting = Struct.new(:key, :variable, :values, :about, :tunable, keyword_init: true) do
      # @param text [String] the value as the user wrote it
      def accepts?(text) = values.is_a?(Array) ? values.include?(text) : values.match?(text)

      # @return [String] what to write, for an error message
      def expected
        return values.join(", ") if values.is_a?(Array)

        { INTEGER => "a whole number", NUMBER => "a number", SWITCH => "0 or 1" }.fetch(values, "a word or a number")
      end
    end

    # The forms of a value.
    INTEGER = /\A\d+\z/
    NUMBER = /\A\d+(?:\.\d+)?\z/
    SWITCH = /\A[01]\z/
    WORD = /\A[A-Za-z0-9_.:|-]+\z/

    # The definition of one allocator.
    #
    # name: as on the command line; patterns: its library's file names, best
    # first; packages: Debian packages that bring it, newest first; settings:
    # its closed list, or nil where any key goes (`open_variable` then says
    # which); variables: pattern of the environment variables it reads;
    # interface_number: whether its file name carries a number that is not the release's;
    # untrimmable: whether it has no call that gives free memory back;
    # symbol: a function that only its library exports, under whatever file name.
    Definition = Struct.new(:name, :patterns, :packages, :settings, :open_about, :variables, :interface_number,
                            :untrimmable, :symbol, keyword_init: true) do
      # @param file [String] a path or file name
      # @return [Boolean] whether it is this allocator's library, in any variant (debug, profiling)
      def library?(file) = File.basename(file).match?(/\Alib#{name}[a-z_-]*[\w.-]*\.so(\.|\z)/)

      # @return [Setting, nil] the setting of that name; made up on the spot where any key goes
      def setting(key)
        return settings[key] if settings

        Setting.new(key: key, values: WORD) if key.match?(/\A[a-z][a-z0-9_.]*\z/)
      end
    end

    # @param list [Array<Setting>]
    # @return [Hash{String => Setting}] by key
    def self.by_key(*list) = list.to_h { |setting| [setting.key, setting] }.freeze

    # Variables: "Memory Allocation Tunables" and mallopt(3) of glibc; "TUNING" in
    # jemalloc(3); gperftools' docs/tcmalloc.html; mimalloc's "Environment Options".
    CATALOGUE = [
      Definition.new(
        name: "glibc", patterns: [], packages: [],
        variables: /\A(MALLOC_\w+_|MALLOC_ARENA_(MAX|TEST)|GLIBC_TUNABLES)\z/,
        settings: by_key(
          Setting.new(key: "arena_max", variable: "MALLOC_ARENA_MAX", values: INTEGER,
                      tunable: "glibc.malloc.arena_max", about: "most arenas (default: 8 x cores)"),
          Setting.new(key: "arena_test", variable: "MALLOC_ARENA_TEST", values: INTEGER,
                      tunable: "glibc.malloc.arena_test", about: "arenas before the default limit is computed"),
          Setting.new(key: "trim_threshold", variable: "MALLOC_TRIM_THRESHOLD_", values: INTEGER,
                      tunable: "glibc.malloc.trim_threshold", about: "free bytes at the heap top to return"),
          Setting.new(key: "mmap_threshold", variable: "MALLOC_MMAP_THRESHOLD_", values: INTEGER,
                      tunable: "glibc.malloc.mmap_threshold", about: "size from which a block has its own mapping"),
          Setting.new(key: "mmap_max", variable: "MALLOC_MMAP_MAX_", values: INTEGER, tunable: "glibc.malloc.mmap_max",
                      about: "most blocks with their own mapping"),
          Setting.new(key: "top_pad", variable: "MALLOC_TOP_PAD_", values: INTEGER, tunable: "glibc.malloc.top_pad",
                      about: "bytes requested in advance when the heap grows"),
          Setting.new(key: "tcache_count", values: INTEGER, tunable: "glibc.malloc.tcache_count",
                      about: "blocks per size in a thread cache (default: 7)"),
          Setting.new(key: "tcache_max", values: INTEGER, tunable: "glibc.malloc.tcache_max",
                      about: "largest block in a thread cache (default: 1032; most: some 4,194,000, glibc 2.42)"),
          Setting.new(key: "hugetlb", values: %w[0 1 2], tunable: "glibc.malloc.hugetlb",
                      about: "0: none, 1: transparent, 2: mmap (glibc 2.35)")
        )
      ),
      Definition.new(
        name: "jemalloc", patterns: [/\Alibjemalloc\.so(?:\.([\d.]+))?\z/], packages: %w[libjemalloc2],
        symbol: "mallctl",
        variables: /\A_?(JE_)?MALLOC_CONF\z/,
        open_about: "any key of MALLOC_CONF, e.g. narenas=2, dirty_decay_ms=1000"
      ),
      Definition.new(
        name: "tcmalloc",
        # The minimal library is the allocator alone; the full one brings a profiler and an unwinder.
        patterns: [/\Alibtcmalloc_minimal\.so(?:\.([\d.]+))?\z/, /\Alibtcmalloc\.so(?:\.([\d.]+))?\z/],
        packages: %w[libtcmalloc-minimal4t64 libtcmalloc-minimal4], variables: /\ATCMALLOC_\w+\z/,
        symbol: "tc_version",
        settings: by_key(
          Setting.new(key: "release_rate", variable: "TCMALLOC_RELEASE_RATE", values: NUMBER,
                      about: "rate of returning pages, 0 to 10 (default: 1)"),
          Setting.new(key: "max_total_thread_cache_bytes", variable: "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES",
                      values: INTEGER, about: "limit of all thread caches together"),
          Setting.new(key: "aggressive_decommit", variable: "TCMALLOC_AGGRESSIVE_DECOMMIT", values: SWITCH,
                      about: "1 returns every free page at once"),
          Setting.new(key: "heap_limit_mb", variable: "TCMALLOC_HEAP_LIMIT_MB", values: INTEGER,
                      about: "MiB above which allocation fails")
        )
      ),
      Definition.new(
        name: "mimalloc", patterns: [/\Alibmimalloc\.so(?:\.([\d.]+))?\z/],
        packages: %w[libmimalloc3 libmimalloc2.0], variables: /\AMIMALLOC_\w+\z/, symbol: "mi_version",
        open_about: "any option of mimalloc, e.g. purge_delay=0 becomes MIMALLOC_PURGE_DELAY=0"
      ),
      Definition.new(
        # It reads no variable, and what is wholly free goes back as it is freed. The number in its file name is that of
        # its interface, not of the release.
        name: "rpmalloc", patterns: [/\Alibrpmalloc\.so(?:\.([\d.]+))?\z/], packages: %w[librpmalloc1],
        variables: /(?!)/, settings: {}.freeze, interface_number: true, untrimmable: true,
        symbol: "rpmalloc_global_statistics"
      ),
      Definition.new(
        name: "culet", patterns: [/\Alibculet\.so\z/], packages: [], symbol: "culet_version",
        # Those of other parts of culet work on any allocator.
        variables: /\ACULET_(?:CHILDREN|DECAY|HARDEN|PROFILE(?:_OUT|_EVERY)?)\z/,
        settings: by_key(
          Setting.new(key: "children", variable: "CULET_CHILDREN", values: %w[ruby all none],
                      about: "child programs that use it (default: ruby)"),
          Setting.new(key: "harden", variable: "CULET_HARDEN", values: %w[0 1 2 3],
                      about: "detect or stop memory errors (default: 0; slow)")
        )
      )
    ].freeze

    # An allocator that only a path names.
    #
    # @return [Definition] without settings, and without a call that returns memory
    def self.by_path(name)
      Definition.new(name: name, patterns: [], packages: [], variables: /(?!)/, settings: {}.freeze, untrimmable: true)
    end

    # No distribution has a package of it. It exports the functions of malloc and no others, so its file name identifies
    # it.
    SNMALLOC = by_path("snmalloc")
    UNKNOWN = by_path("unknown")
    private_constant :SNMALLOC, :UNKNOWN

    private_class_method :by_key, :by_path
  end
end
