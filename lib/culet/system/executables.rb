# frozen_string_literal: true

module Culet
  # Programs, looked for as a shell does.
  module Executables
    module_function

    # @param word [String] a path, or a name to look for
    # @param search [String] folders as in PATH
    # @return [String, nil] the path of the program
    def find(word, search: ENV["PATH"].to_s)
      candidates(word, search: search).find { |path| File.file?(path) && File.executable?(path) }
    end

    # @param word [String] as of `find`; what holds a NUL is no path
    # @param search [String] as of `find`
    # @return [Array<String>] where it may be
    def candidates(word, search: ENV["PATH"].to_s)
      return [] if word.empty? || word.include?("\0")
      return [word] if word.include?("/")

      # A folder's name may be invalid in the locale's encoding, which `split` refuses.
      search.b.split(":", -1).map do |folder|
        File.join(folder.empty? ? "." : folder.force_encoding(search.encoding), word)
      end
    end
  end
end
