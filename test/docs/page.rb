# frozen_string_literal: true

# A document, and what the tests hold it to: its links, its headings, its fenced blocks.
class Page
  ROOT = File.expand_path("../..", __dir__)
  # Folders that hold other people's documents.
  FOREIGN = %r{\A(?:tmp|pkg|doc|coverage|vendor)/}
  FENCE = /^(?:<!-- no-run: (?<reason>[^\n]*?) -->\n+)?```(?<language>\w+)(?<marks>[^\n]*)\n(?<code>.*?)^```$/m
  private_constant :FOREIGN, :FENCE

  # A fenced block: its language, whether it is marked `no-run`, why, its code, and the line it begins in.
  Block = Struct.new(:language, :run, :reason, :code, :line) do
    # @return [String, nil] the file that a comment in the block's first line names
    def file = code[%r{\A# ([\w./-]+\.rb)$}, 1]
  end

  # @return [Array<Page>] all documents of the checkout
  def self.all = Dir.glob("**/*.md", base: ROOT).grep_v(FOREIGN).sort.map { |name| new(name) }

  # @return [String] the path, from the top of the checkout
  attr_reader :name

  def initialize(name)
    @name = name
  end

  def text = @text ||= File.read(File.join(ROOT, name), encoding: Encoding::UTF_8)

  def lines = text.lines.size

  # @return [String] the text without fenced blocks and code
  def prose = text.gsub(/^```.*?^```/m, "").gsub(/`[^`\n]*`/, "`")

  # @return [Array<String>] targets of links and pictures inside the checkout
  def links = (prose.scan(/\]\(([^)\s]+)\)/) + prose.scan(/^\[[^\]]+\]: (\S+)/)).flatten.grep_v(/\A(?:https?|mailto):/)

  # @return [Array<String>] how links call the headings; one that comes again gets a number
  def anchors
    seen = Hash.new(-1)
    headings = text.gsub(/^```.*?^```/m, "").scan(/^#+ (.*)/).flatten
    headings.map { |heading| heading.downcase.gsub(/[^\p{Word}\- ]/, "").tr(" ", "-") }
            .map { |anchor| (seen[anchor] += 1).zero? ? anchor : "#{anchor}-#{seen[anchor]}" }
  end

  # @return [Boolean] whether the link's file is there, and its heading
  def leads?(link)
    path, anchor = link.split("#", 2)
    target = path.empty? ? name : File.join(File.dirname(name), path)
    return false unless File.exist?(File.join(ROOT, target))

    anchor.nil? || Page.new(File.expand_path(target, "/").delete_prefix("/")).anchors.include?(anchor)
  end

  def blocks
    text.to_enum(:scan, FENCE).map do
      match = Regexp.last_match
      run = !match[:marks].split.include?("no-run")
      Block.new(match[:language], run, match[:reason], match[:code], match.pre_match.count("\n") + 1)
    end
  end
end
