# frozen_string_literal: true

# Bundler requires this file for `gem "culet-cli"`. Without it, Bundler would load the command line into the program.
