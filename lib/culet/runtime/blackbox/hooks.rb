# frozen_string_literal: true

module Culet
  module BlackBox
    # Where a process begins, ends or becomes another program without an at_exit handler: fork, daemon, exit!, exec; and
    # where a server learns how a process that it has forked has ended.
    #
    # @api private
    module Hooks
      # For Process and Kernel as receivers.
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

      # For Process as the receiver.
      module Beginnings
        # @return [Integer] as of Ruby
        def _fork
          pid = super
          pid.zero? ? BlackBox.begin_in_child : BlackBox.watch(pid)
          pid
        end

        # The process that calls it ends without its exit handlers.
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
