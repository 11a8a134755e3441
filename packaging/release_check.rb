# frozen_string_literal: true

module Packaging
  # What must be true before a version is published: the project's address is no placeholder, the tag is the version,
  # and the workflows that publish name actions and images in a way that nobody can change later.
  class ReleaseCheck
    # Workflows whose results are published.
    WORKFLOWS = %w[release.yml pages.yml].freeze
    # RFC 2606 reserves the domain .example for documentation.
    PLACEHOLDER = /[\w.-]+\.example\b/
    # Files that name the project's address, which none of them can take from Culet::HOMEPAGE.
    ADDRESSES = %w[lib/culet/version.rb SECURITY.md debian/control debian/copyright].freeze
    IMAGE = /\b(?:debian|ubuntu|ruby):[\w.-]+(?:@sha256:\h{64})?/
    private_constant :WORKFLOWS, :PLACEHOLDER, :ADDRESSES, :IMAGE

    # @param root [String] the checkout
    def initialize(root)
      @root = root
    end

    # @param tag [String, nil] the tag that is released; nil: none yet
    # @return [Array<String>] a sentence for each thing that is not as it must be
    def problems(tag: nil)
      [*address_problems, *version_problems(tag), *workflow_problems]
    end

    private

    def read(name) = File.read(File.join(@root, name), encoding: Encoding::UTF_8)

    def version = read("lib/culet/version.rb")[/VERSION = "([^"]+)"/, 1]

    def address_problems
      ADDRESSES.filter_map do |name|
        host = read(name)[PLACEHOLDER]
        "#{name} names #{host}, a placeholder; write the address at which the project is published" if host
      end
    end

    def version_problems(tag)
      problems = []
      problems << "the tag is #{tag}, but lib/culet/version.rb has #{version}" if tag && tag != "v#{version}"
      section = /^## \[?#{Regexp.escape(version)}\b/
      problems << "CHANGELOG.md has no section for #{version}" unless read("CHANGELOG.md").match?(section)
      problems
    end

    def workflow_problems
      WORKFLOWS.flat_map do |name|
        lines = read(".github/workflows/#{name}").lines
        actions = lines.filter_map { |line| line[/\buses: (\S+)/, 1] }.grep_v(/@\h{40}\z/)
        images = lines.flat_map { |line| line.scan(IMAGE) }.grep_v(/@sha256:/)
        [*actions.map { |action| "#{name} uses #{action}; name the action by commit" },
         *images.map { |image| "#{name} uses the image #{image}; name the image by digest" }].uniq
      end
    end
  end
end
