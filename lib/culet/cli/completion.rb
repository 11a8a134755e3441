# frozen_string_literal: true

require_relative "command"
require_relative "outline"

module Culet
  module CLI
    # `culet completion`: shell completion of verbs and options, generated from --help.
    class Completion < Command
      SHELLS = { "bash" => :Bash, "zsh" => :Zsh, "fish" => :Fish }.freeze
      BANNER = "culet completion bash|zsh|fish"
      WORDS = SHELLS.keys.freeze
      EXAMPLES = ["eval \"$(culet completion bash)\"              in ~/.bashrc",
                  "culet completion zsh > \"${fpath[1]}/_culet\"  once",
                  "eval \"$(culet completion zsh)\"               or in ~/.zshrc, after compinit",
                  "culet completion fish > ~/.config/fish/completions/culet.fish"].freeze
      private_constant :SHELLS

      private

      def execute(words, *)
        raise UsageError, "`culet completion` takes the name of a shell: #{SHELLS.keys.join(", ")}" if words.size != 1

        constant = SHELLS.fetch(words.first) do
          advice = Suggestion.for(words.first, SHELLS.keys) || "the shells are #{SHELLS.keys.join(", ")}"
          raise UsageError, "there is no completion for #{words.first.inspect}; #{advice}"
        end
        require_relative "completion/#{words.first}"
        script = self.class.const_get(constant).new(Outline.all).to_s
        deliver(options[:json] ? JSON.generate(shell: words.first, script: script) : script)
        EXIT_OK
      end
    end
  end
end
