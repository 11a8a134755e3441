# frozen_string_literal: true

# Boots: requires some hundred files of real libraries (RubyGems' and Bundler's
# commands, RDoc, IRB, REXML, OpenSSL, Net::HTTP and what they need), all of which
# come with Ruby. Most of the memory is compiled code, method tables and symbols,
# and stays allocated.
#
# The published case: the boot of a Rails application, half of whose memory is
# compiled code; here without gems to install.
#
# CULET_SCALE below 1 loads that share of the files.

require "rbconfig"
require_relative "shared/rest"

TREES = %w[bundler/cli csv did_you_mean digest erb irb json net open-uri openssl optparse prism psych racc
           rdoc reline resolv rexml ripper rubygems/commands rubygems/package rubygems/request_set
           rubygems/resolver rubygems/security syntax_suggest uri].freeze
# Files with an effect when required, or with missing dependencies.
SKIPPED = %r{/cmd/|/ext/|/windows|/ws-for-case|/lc/|did_you_mean/(experimental|verbose|formatters)|
             rdoc/generator/|/commands/(mirror|rdoc)|/templates/|_test|/test|bundled_gems}x

library = RbConfig::CONFIG.fetch("rubylibdir")
$LOAD_PATH.concat(Gem::Specification.stubs.select { |found| %w[csv rexml racc rdoc].include?(found.name) }
                                    .flat_map(&:full_require_paths))
files = TREES.flat_map { |tree| Dir[File.join(library, "{#{tree}.rb,#{tree}/**/*.rb}")] }.uniq.sort
             .grep_v(SKIPPED)
files = files.first((files.size * SCALE.clamp(0, 1)).ceil)

require "bundler"
require "bundler/cli"
loaded = files.count { |file| require file.delete_prefix("#{library}/").delete_suffix(".rb") }
abort("boot: no library was loaded from #{library}") if loaded.zero?
Rest.call
