# frozen_string_literal: true

require "json"
require "zlib"

module Soak
  # What a request for a kind of work and a number is answered with. The server does the work in the way that the kind
  # names, the client in the plain one; the answers must be the same.
  module ProfileWork
    # Kinds of work, and how many of a hundred requests are of each.
    KINDS = { strings: 14, documents: 14, arrays: 10, fibers: 8, enumerators: 6, timeouts: 4, threads: 6, evaluated: 6,
              defined: 5, unloaded: 5, exceptions: 5, recursion: 2, labels: 5, signals: 4, weak: 3, fiddle: 2,
              spawned: 1, child_exits: 1, child_leaves: 1, child_executes: 1 }.freeze
    # Kinds of work with Ractors, and their shares. Without the profile, too, Ruby crashes, hangs or gives wrong answers
    # where Ractors meet compactions and GC.stress (3.1), or forks (3.3 and 3.4).
    WITH_RACTORS = { ractors: 20, strings: 20, documents: 20, arrays: 20, evaluated: 10, exceptions: 10 }.freeze

    module_function

    # @param ractors [Boolean] whether some of the work is done by Ractors
    # @return [Array<Symbol>] a hundred kinds
    def mix(ractors:) = (ractors ? WITH_RACTORS : KINDS).flat_map { |kind, share| [kind] * share }

    # @return [String] a text of some bytes to some hundred thousand, which the number determines
    def text(number) = Array.new(1 + (number * 40_503 % 400)) { |i| "line #{i} of #{number} " * (number % 7) }.join("\n")

    def records(number)
      Array.new(1 + (number % 60)) { |i| { "id" => i, "name" => "record #{i * number}", "tags" => [i] * (i % 9) } }
    end

    # By Zlib: the classes of Digest do not survive compactions on Ruby 3.1.
    #
    # @return [String] short, and differs where the text does
    def digest(text) = Zlib.crc32(text).to_s

    # @return [String] the answer to every kind of work
    def answer(number) = digest(text(number) + JSON.generate(records(number)))
  end
end
