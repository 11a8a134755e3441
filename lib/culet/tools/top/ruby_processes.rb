# frozen_string_literal: true

require_relative "../../system/processes"

module Culet
  module Top
    # The Ruby programs of this machine that this user may read.
    module RubyProcesses
      RUBY = /\Aruby[\d.]*\z/
      private_constant :RUBY

      module_function

      # @return [Array<Integer>] process numbers, without those that another one of them started; not culet itself, nor
      #   what started it
      def roots
        own = Processes::Search.ancestors(::Process.pid)
        pids = Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).sort
        found = pids.reject { |pid| own.include?(pid) }.select { |pid| ruby?(pid) }
        found.reject { |pid| Processes::Search.ancestors(pid).drop(1).intersect?(found) }
      end

      def ruby?(pid)
        identity = Processes::Identity.new(pid)
        return false unless [identity.executable, identity.program, identity.comm].any? { |name| name&.match?(RUBY) }

        File.open("/proc/#{pid}/smaps_rollup").close
        Processes::Cpu.state(pid) != "Z" && identity.script != "culet"
      rescue *Processes::GONE_OR_FORBIDDEN
        false
      end
      private_class_method :ruby?
    end
  end
end
