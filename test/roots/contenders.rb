# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require_relative "roots"
require_relative "../../lib/culet/allocators"
require_relative "../../lib/culet/tools/cow/experiment"

module Roots
  # Takes part in `Culet::Cow::Experiment` for programs inside roots: every Ruby, on each allocator as the root has it.
  class Contenders
    # Where the program of a root learns what to preload: LD_PRELOAD itself would be taken for the folders here.
    PRELOAD = "CULET_ROOT_PRELOAD"
    SCRIPT = File.join(Root::CHECKOUT, "workloads/cow/experiment.rb")
    # Of the checkout's own Ruby.
    FOREIGN = %w[RUBYOPT RUBYLIB GEM_HOME GEM_PATH BUNDLE_GEMFILE LD_PRELOAD].freeze
    private_constant :PRELOAD, :SCRIPT, :FOREIGN

    # As Culet::Allocators::Choice, with a library of the root's.
    Choice = Struct.new(:name, :library) do
      def spec = name
      def trim = Culet::Allocators::Trim.new

      def environment(base = ENV, isolated: true)
        unset = (isolated ? Culet::Allocators.tuning_variables(base) : []) + FOREIGN
        unset.to_h { |key| [key, nil] }.merge(PRELOAD => library.to_s)
      end
    end

    # As Culet::Cow::Experiment::Interpreter.
    Interpreter = Struct.new(:root, :ruby, :share) do
      def command
        root.command("sh", "-c", "LD_PRELOAD=$#{PRELOAD} exec \"$@\"", "sh", ruby, "#{Root::SHARE}/experiment.rb", share: share, inherit: true)
      end

      def name = @name ||= root.run(ruby, "--version")[/\A\w+ [\d.]+/]
    end

    # @param share [String] a folder of one's own, which is filled with what the programs need
    def initialize(root, share)
      @root = root
      @share = share
      FileUtils.cp(SCRIPT, share)
    end

    # @return [Array<Culet::Cow::Experiment::Contender>] each Ruby on each allocator
    # @raise [RuntimeError] when the allocator cannot be built there
    def call
      choices = [Choice.new("glibc"), Choice.new("jemalloc", jemalloc), Choice.new("culet", @root.libculet(share: @share))]
      interpreters = @root.rubies.map { |ruby| Interpreter.new(@root, ruby, @share) }
      interpreters.product(choices).map { |pair| Culet::Cow::Experiment::Contender.new(*pair) }
    end

    private

    def jemalloc = "/#{Dir.glob("usr/lib/*/libjemalloc.so.2", base: @root.path).fetch(0)}"
  end
end
