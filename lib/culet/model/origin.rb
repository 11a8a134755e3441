# frozen_string_literal: true

require "rbconfig"

module Culet
  # The gem of a file, by its path alone: the gems need not be installed on the machine of the report.
  class Origin
    RUBY = "Ruby's own library"
    APPLICATION = "the program"
    GEM = %r{/gems/([^/]+?)-(\d[^/]*)/(?!.*/gems/[^/]+-\d)}
    GIT = %r{/bundler/gems/([^/]+)-(\h{7,})/}
    # Of Ruby's folders; a development version's has a suffix.
    API = /\d+\.\d+\.\d+(?:\+\d+)?/
    # Debian's packages have no folder for each gem: the first path component is the name.
    VENDOR = %r{/(?:vendor_ruby|site_ruby)(?:/#{API})?(?:/[^/]*-linux[^/]*)?/([^/]+?)(?:\.rb|\.so)?(?:/|\z)}
    STANDARD = %r{/ruby/#{API}/|\A<internal:}
    # Extensions of a gem in Debian's separate folder.
    EXTENSION = %r{/extensions/[^/]+/[^/]+/([^/]+?)-(\d[^/]*)/}
    private_constant :GEM, :GIT, :API, :VENDOR, :STANDARD, :EXTENSION

    # @param path [String, nil]
    # @return [String] "NAME VERSION", the first folder's name where there is no version, RUBY or APPLICATION
    def self.of(path)
      path = path.to_s
      match = path.match(EXTENSION) || path.match(GIT) || path.match(GEM)
      return match.captures.join(" ") if match

      match = path.match(VENDOR)
      return match[1] if match

      path.match?(STANDARD) ? RUBY : APPLICATION
    end

    # @param gem [String] of `of`
    # @return [String] the path relative to its gem
    def self.short(path, gem)
      inside = path[%r{/#{Regexp.escape(gem.sub(" ", "-"))}/(.+)}, 1] if gem.include?(" ")
      inside ? "#{gem}: #{inside}" : path
    end
  end
end
