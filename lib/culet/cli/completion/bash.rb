# frozen_string_literal: true

module Culet
  module CLI
    class Completion < Command
      # For bash. Nothing that a process calls itself is offered: compgen expands its words.
      # outlines: an Outline of each verb.
      Bash = Struct.new(:outlines) do
        # @return [String] the script
        def to_s
          places = "word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}"
          commands = 'COMPREPLY=($(compgen -c -- "$word"))'
          files = "compopt -o default 2>/dev/null"
          seconds = SECOND_WORDS.keys.map { |words| quoted(words) }.join("|")
          <<~BASH
            # Completion of culet's verbs and options for bash, by `culet completion bash`.
            _culet() {
              local #{places} options= words= at
              COMPREPLY=()
              if ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [[ $verb == help ]]; }; then
                COMPREPLY=($(compgen -W #{quoted([*VERBS.keys, "help", "version"])} -- "$word"))
                return
              fi
              for ((at = 2; at < COMP_CWORD; at++)); do
                if [[ ${COMP_WORDS[at]} == -- ]]; then
                  if ((at + 1 == COMP_CWORD)); then #{commands}; else #{files}; fi
                  return
                fi
                case "$verb ${COMP_WORDS[at]}" in #{seconds}) verb="$verb ${COMP_WORDS[at]}" ;; esac
              done
              case "$verb $previous" in
            #{arguments.join("\n")}
              esac
              case $verb in
            #{verbs.join("\n")}
              esac
              if [[ $word == -* ]]; then
                COMPREPLY=($(compgen -W "$options" -- "$word"))
              elif [[ $words ]]; then
                COMPREPLY=($(compgen -W "$words" -- "$word"))
              else
                #{files}
              fi
            }
            complete -F _culet culet
          BASH
        end

        private

        def quoted(words) = "'#{words.join(" ")}'"

        def verbs
          outlines.map do |one|
            words = " words=#{quoted(one.words)}" if one.words.any?
            "    #{quoted([one.name])}) options=#{quoted(one.options.flat_map(&:flags))}#{words} ;;"
          end
        end

        # What comes behind an option that takes something: its values, a file's name, or what only the user knows.
        def arguments
          outlines.flat_map do |one|
            one.options.select { |option| option.argument && !option.argument.start_with?("[") }.map do |option|
              action = if option.values then "COMPREPLY=($(compgen -W #{quoted(option.values)} -- \"$word\"))"
                       elsif option.file? then "compopt -o default 2>/dev/null"
                       else ":"
                       end
              "    #{option.flags.map { |flag| quoted([one.name, flag]) }.join("|")}) #{action}; return ;;"
            end
          end
        end
      end
    end
  end
end
