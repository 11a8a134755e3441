# frozen_string_literal: true

module Culet
  module CLI
    class Completion < Command
      # For fish.
      # outlines: an Outline of each verb.
      Fish = Struct.new(:outlines) do
        # @return [String] the script
        def to_s
          subcommand = "complete -c culet -n __fish_use_subcommand -f -a"
          ["# Completion of culet's verbs and options for fish, by `culet completion fish`.",
           *VERBS.map { |verb, (_, text)| "#{subcommand} #{verb} -d #{quote(text)}" },
           "#{subcommand} help -d 'options and examples of a verb'",
           "#{subcommand} version -d 'which version this is'",
           "complete -c culet -n '__fish_seen_subcommand_from help' -f -a #{quote(VERBS.keys.join(" "))}",
           *outlines.flat_map { |one| [*words(one), *one.options.map { |option| line(one, option) }] },
           ""].join("\n")
        end

        private

        def quote(text) = "'#{text.gsub(/['\\]/) { |char| "\\#{char}" }}'"

        def condition(outline)
          tests = outline.name.split.map do |word|
            next "__fish_seen_subcommand_from #{word}" unless word.start_with?("-")

            "__fish_contains_opt #{word.delete_prefix("--")}"
          end
          "-n #{quote(tests.join("; and "))}"
        end

        def words(outline)
          return [] if outline.words.empty?

          ["complete -c culet #{condition(outline)} -f -a #{quote(outline.words.join(" "))}"]
        end

        def line(outline, option)
          flags = option.flags.map do |flag|
            flag.start_with?("--") ? "-l #{flag.delete_prefix("--")}" : "-s #{flag.delete_prefix("-")}"
          end
          needs = if option.argument.nil? || option.argument.start_with?("[") then []
                  elsif option.values then ["-x", "-a #{quote(option.values.join(" "))}"]
                  else [option.file? ? "-r -F" : "-x"]
                  end
          ["complete -c culet", condition(outline), *flags, *needs, "-d #{quote(option.text.join(" "))}"].join(" ")
        end
      end
    end
  end
end
