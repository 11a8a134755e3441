# frozen_string_literal: true

require "open3"

module HardeningBench
  # One attack: a row of the table of a program in attacks/.
  #
  # name: the program's argument; family: heading; effect: what proves success; program: path
  Attack = Struct.new(:name, :family, :effect, :program, keyword_init: true) do
    def command = [program, name]

    # @return [String] the family on the command line
    def family_word = family.downcase.tr(" ", "-")
  end

  # Sources of the attacks, in the order of the tables.
  PROGRAMS = %w[bounds after_free frees mismatch forged predict].freeze

  # @param built [String] the folder of the built programs
  # @return [Array<Attack>] every attack
  def self.attacks(built)
    PROGRAMS.flat_map do |name|
      program = File.join(built, name)
      text, status = Open3.capture2({ "LD_PRELOAD" => nil }, program, "--list")
      raise Culet::Error, "#{program} --list ended with status #{status.exitstatus}" unless status.success?

      text.lines(chomp: true).map do |line|
        attack, family, effect = line.split("\t")
        Attack.new(name: attack, family: family, effect: effect, program: program)
      end
    end
  end
end
