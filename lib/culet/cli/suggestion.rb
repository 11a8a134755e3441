# frozen_string_literal: true

module Culet
  module CLI
    # Suggests a known word for an unknown one.
    module Suggestion
      module_function

      # @param known [Array<String>]
      # @return [String, nil] "did you mean `report`?"; nil where nothing is like it
      def for(word, known)
        require "did_you_mean"
        like = DidYouMean::SpellChecker.new(dictionary: known).correct(word).first
        "did you mean `#{like}`?" if like
      rescue LoadError # a Ruby packaged without this default gem
        nil
      end
    end
  end
end
