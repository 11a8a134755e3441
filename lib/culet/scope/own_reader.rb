# frozen_string_literal: true

require_relative "reader"

module Culet
  module Scope
    # Has culet-scope read the process that we are.
    class OwnReader < Reader
      # The program waits for a line until its number is known, and thus it can be let in. It keeps the number.
      SHELL = "/bin/sh"
      WAIT = 'read -r _ && exec "$0" "$@"'
      private_constant :SHELL, :WAIT

      # @param admit [#call, nil] is given the number of the process that is to read us; nil: nothing is to be done for
      #   it
      # @param options [Hash] as for Reader
      def initialize(admit: nil, **options)
        super(::Process.pid, **options)
        @admit = admit
      end

      private

      def start(**redirections)
        return super unless @admit

        input, go = IO.pipe
        child = spawn(SHELL, "-c", WAIT, *command, in: input, **redirections)
        admit(child)
        go.puts
        child
      ensure
        [input, go].compact.each(&:close)
      end

      def admit(child)
        @admit.call(child)
      rescue SystemCallError => e
        end_program(child)
        raise Error, "this process cannot let another one read it: #{e.message.downcase}"
      end

      # A program that waits for any child of its own may have taken the status. Whether all is there, the checksum
      # tells.
      def status_of(child)
        super
      rescue Errno::ECHILD
        nil
      end
    end
  end
end
