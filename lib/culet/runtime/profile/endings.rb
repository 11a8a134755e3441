# frozen_string_literal: true

module Culet
  module Profile
    # Writes the profile of a process to CULET_PROFILE_OUT at its end: in an at_exit handler, and where a process
    # runs none, before exit! and exec. The profile before an exec goes to FILE.exec1, FILE.exec2, ...,
    # because the new program has the same process number.
    module Endings
      # Prepended to the singleton classes of Process and Kernel.
      module Functions
        # Ends the process.
        def exit!(*)
          Endings.write
          super
        end

        # Replaces the process. If exec fails, the process continues.
        def exec(*)
          path = Endings.write_before_exec
          super
        ensure
          Endings.remove(path) if path
        end
      end

      # Prepended to Kernel.
      PrivateFunctions = Functions.clone.tap { |copy| copy.send(:private, :exit!, :exec) }
      private_constant :PrivateFunctions

      class << self
        # Registers the at_exit handler. The first handler to be registered runs last, after those of the program.
        def install(settings)
          @settings = settings
          @starter = ::Process.pid
          at_exit { write }
          Kernel.prepend(PrivateFunctions)
          [Kernel, ::Process].each { |owner| owner.singleton_class.prepend(Functions) }
        end

        # Writes the file of this process.
        #
        # @return [String, nil] its path; nil, after a warning, when it cannot be written
        def write = write_to(file)

        # Writes the file of a process that exec replaces.
        #
        # @return [String, nil] as `write`
        def write_before_exec
          path = file
          write_to((1..).lazy.map { |number| "#{path}.exec#{number}" }.find { |name| !File.exist?(name) })
        end

        # @param path [String] a file of `write_before_exec`
        def remove(path)
          File.unlink(path)
        rescue SystemCallError => e
          warn("culet: the memory profile of a process that goes on cannot be removed: #{e.message}")
        end

        private

        def file = @settings.file(forked: ::Process.pid != @starter)

        # Rescues all exceptions, also of Timeout and Thread#kill: the process must end.
        def write_to(path)
          Thread.handle_interrupt(Object => :never) { Profile.write(path) }
        rescue StandardError, NoMemoryError => e
          warn("culet: the memory profile cannot be written: #{e.message}")
        end
      end
    end
  end
end
