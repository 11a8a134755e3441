# frozen_string_literal: true

require "digest"
require "erb"
require "json"
require_relative "../text/figures"
require_relative "../version"
require_relative "packing"

module Culet
  # The shell of a page: one HTML file with styles, scripts and data inside, which loads nothing. Text of a process is
  # escaped, or data that a script only ever inserts as text. A subclass has
  #
  #   FOLDER    of page.html.erb and of what it embeds
  #   SCRIPTS   names of its scripts in that folder, without .js, or their paths
  #   STYLES    names of its styles there, behind those of all pages
  class HtmlPage
    include Text::Figures

    # Scripts that several pages have: the theme, packed data, figures as text, the tooltip.
    COMMON = %w[theme data format tip].map { |name| File.expand_path("page/#{name}", __dir__) }.freeze
    # Of pages that explore memory with a flame graph.
    EXPLORING = [*COMMON, *%w[explore tree flame].map { |name| File.expand_path("page/#{name}", __dir__) }].freeze
    SCRIPTS = [].freeze
    # The colours and fonts of all pages.
    STYLE = File.expand_path("page/page.css", __dir__)
    # Of pages that explore memory, and of those that show levels; named in STYLES.
    EXPLORER = File.expand_path("page/explorer.css", __dir__)
    LEVELS = File.expand_path("page/levels.css", __dir__)
    STYLES = [EXPLORER, "page.css"].freeze
    private_constant :STYLE

    # The template of a page between `head` and `foot`, which it calls.
    TEMPLATE = "page.html.erb"

    # @return [String] the page
    def to_s = @to_s ||= ERB.new(asset(TEMPLATE), trim_mode: "-").result(binding)

    private

    def h(text) = ERB::Util.html_escape(text)

    # @param name [String] of a file in the folder
    def asset(name) = File.read(File.expand_path(name, self.class::FOLDER), encoding: Encoding::UTF_8)

    # @param script_source [String, nil] of the content security policy; default: the one script of the page
    # @param policy [Boolean] whether the page brings its policy; false: the server sends one
    # @param attributes [String] HTML, of the root element
    # @param body [String] HTML, of the body
    # @param more [String] HTML, behind the styles
    # @return [String] HTML up to the content
    def head(title, script_source: own_script_source, policy: true, attributes: "", body: "", more: "")
      <<~HTML.chomp
        <!DOCTYPE html>
        <html lang="en"#{attributes}>
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <meta name="referrer" content="no-referrer">
        #{%(<meta http-equiv="Content-Security-Policy" content="#{content_policy(script_source)}">) if policy}
        <link rel="icon" href="data:,">
        <title>#{h title}</title>
        <style>#{style}</style>
        #{more}</head>
        <body#{body}>
      HTML
    end

    # @param sentence [String] in front of what all these pages say
    # @return [String] HTML below the content
    def footer(sentence)
      "<footer><p>#{h sentence}</p><p>MB = 1,000,000 bytes. This page works offline. culet #{VERSION}</p></footer>"
    end

    # @param value [Object] for JSON
    # @return [String] what `unpackJson` reads: a zlib stream in base64
    def pack(value) = Packing.base64(JSON.generate(value))

    # The text under the pointer, the data, and the script.
    #
    # @param data [Hash{String => String}] by the id of its element
    # @return [String] HTML behind the content
    def foot(data = {})
      elements = data.map { |id, text| %(<script type="text/plain" id="#{id}">#{text}</script>\n) }
      <<~HTML
        <div id="tip" role="tooltip" hidden></div>
        #{elements.join}<script>#{script}</script>
        </body>
        </html>
      HTML
    end

    def content_policy(script_source)
      scripts = "script-src #{script_source}; " if script_source
      "default-src 'none'; #{scripts}style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    end

    def own_script_source = ("'#{digest(script)}'" if self.class::SCRIPTS.any?)

    def style = @style ||= [STYLE, *self.class::STYLES].map { |name| asset(name) }.join("\n")

    # One function around all files, so that their names are not global.
    def script
      @script ||= begin
        sources = self.class::SCRIPTS.map { |name| asset("#{name}.js") }
        "(function () {\n\"use strict\";\n#{sources.join("\n")}\n}());"
      end
    end

    def digest(text) = "sha256-#{Digest::SHA256.base64digest(text)}"

    # JSON for a script element, with everything escaped that HTML or older JavaScript would interpret.
    def json(value) = JSON.generate(value).gsub(/[<>&\u2028\u2029]/) { |char| format('\u%04x', char.ord) }
  end
end
