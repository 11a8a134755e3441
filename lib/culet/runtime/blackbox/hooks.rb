# frozen_string_literal: true

module Culet
  module BlackBox
    # Hooks of the events of a process that run no at_exit handler: fork, daemon, exit!, exec; and of the waits by
    # which a server learns the status of its forked processes.
    #
    # @api private
    module Hooks
      # Prepended to the singleton classes of Process and Kernel.
      module Endings
        # Does not return.
        def exit!(*status)
          BlackBox.discard
          super
        end

        # Returns if the program cannot be run.
        def exec(*command, **options)
          BlackBox.discard_for { super }
        end
      end

      # Prepended to the singleton class of Process.
      module Beginnings
        # @return [Integer] as of Ruby
        def _fork
          pid = super
          pid.zero? ? BlackBox.begin_in_child : BlackBox.watch(pid)
          pid
        end

        # The calling process ends without running exit handlers.
        #
        # @return [Integer] 0
        def daemon(*settings)
          BlackBox.discard_for { super }
        ensure
          BlackBox.forget_children
        end

        %i[wait wait2 waitpid waitpid2].each do |name|
          define_method(name) do |*words|
            result = super(*words)
            BlackBox.ended(::Process.last_status) if result
            result
          end
        end
      end

      # Kernel's methods are called without a receiver, by every object. A module that is prepended to Kernel or Object
      # would be an ancestor of all classes, so these are replaced.
      def self.install
        return if @installed

        @installed = true
        ::Process.singleton_class.prepend(Endings, Beginnings)
        ::Kernel.singleton_class.prepend(Endings)
        replace(:exit!) { |former, object, words| BlackBox.discard && former.bind_call(object, *words) }
        replace(:exec) { |former, object, words| BlackBox.discard_for { former.bind_call(object, *words) } }
      end

      # @yieldparam former [UnboundMethod]
      # @yieldparam object [Object]
      # @yieldparam words [Array] the arguments
      def self.replace(name, &body)
        former = ::Kernel.instance_method(name)
        ::Kernel.send(:remove_method, name)
        ::Kernel.send(:define_method, name) { |*words| body.call(former, self, words) }
        ::Kernel.send(:ruby2_keywords, name)
        ::Kernel.send(:private, name)
      end
      private_class_method :replace
    end
  end
end
