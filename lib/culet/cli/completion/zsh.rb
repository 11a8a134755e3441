# frozen_string_literal: true

module Culet
  module CLI
    class Completion < Command
      # For zsh: a file of $fpath, or to be evaluated behind compinit.
      # outlines: an Outline of each verb.
      Zsh = Struct.new(:outlines) do
        # @return [String] the script
        def to_s
          <<~ZSH
            #compdef culet
            # Completion of culet's verbs and options for zsh, by `culet completion zsh`.
            _culet() {
              local -a verbs
              verbs=(
            #{VERBS.map { |verb, (_, line)| "    #{quote("#{verb}:#{line}")}" }.join("\n")}
                'help:options and examples of a verb' 'version:which version this is'
              )
              if (( CURRENT == 2 )) || { (( CURRENT == 3 )) && [[ $words[2] == help ]] }; then
                _describe -t verbs verb verbs
                return
              fi
              local verb=$words[2]
              if [[ -n ${words[(r)experiment]} && $verb == cow ]]; then verb='cow experiment'; fi
              if [[ -n ${words[(r)--unused]} && $verb == requires ]]; then verb='requires --unused'; fi
              shift words
              (( CURRENT-- ))
              case $verb in
            #{outlines.map { |one| branch(one) }.join("\n")}
              esac
            }
            if [[ $funcstack[1] == _culet ]]; then _culet "$@"; else compdef _culet culet; fi
          ZSH
        end

        private

        def quote(text) = "'#{text.gsub("'", "'\\\\''")}'"

        def branch(outline)
          rest = outline.words.any? ? "*:word:(#{outline.words.join(" ")})" : "*:word:_files"
          specs = [*outline.options.flat_map { |option| specs(option) }, rest]
          "    #{quote(outline.name)}) _arguments #{specs.map { |spec| quote(spec) }.join(" ")} ;;"
        end

        # zsh gives brackets and colons a meaning.
        def specs(option)
          text = option.text.join(" ").gsub(/[\[\]\\]/) { |char| "\\#{char}" }
          option.flags.map { |flag| "#{flag}[#{text}]#{argument(option)}" }
        end

        def argument(option)
          return unless option.argument

          action = if option.values then "(#{option.values.join(" ")})"
                   elsif option.file? then "_files"
                   end
          optional = ":" if option.argument.start_with?("[")
          "#{optional}:#{option.argument.gsub(/[^A-Za-z]+/, " ").strip.downcase}:#{action}"
        end
      end
    end
  end
end
