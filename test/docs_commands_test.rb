# frozen_string_literal: true

require "test_helper"
require "etc"
require_relative "docs/page"
require_relative "docs/reader"

# The commands of README.md and the guide run as they are written, against a small server.
class DocsCommandsTest < Minitest::Test
  PAGES = Page.all.select { |page| page.name == "README.md" || page.name.start_with?("docs/guide/") }.freeze
  PATIENCE = 300
  # What the plain run tries; the other pages are run by bin/test --all.
  FIRST_READ = %w[README.md docs/guide/first-five-minutes.md docs/guide/puma.md docs/guide/memory.md].freeze
  # Characters of a failed page's output that the message has.
  MOST_OUTPUT = 4000
  private_constant :PAGES, :PATIENCE, :FIRST_READ, :MOST_OUTPUT

  PAGES.each do |page|
    define_method(:"test_commands_of_#{page.name}") do
      blocks = page.blocks
      assert_empty blocks.select { |block| block.language == "sh" && !block.run && !block.reason }.map(&:line),
                   "#{page.name} has blocks marked no-run without a comment that says why"
      commands = blocks.select { |block| block.language == "sh" && block.run }
      skip_unless_all unless FIRST_READ.include?(page.name)
      run_commands(page, commands) if commands.any?
    end

    define_method(:"test_ruby_of_#{page.name}") do
      ruby = page.blocks.select { |block| block.language == "ruby" }
      assert_empty ruby.filter_map { |block| syntax_error(page, block) }
    end
  end

  def test_most_blocks_run
    blocks = PAGES.flat_map(&:blocks).select { |block| block.language == "sh" }
    assert_operator blocks.count(&:run), :>, blocks.size * 2 / 3
  end

  private

  def run_commands(page, commands)
    Dir.mktmpdir("culet-docs") do |folder|
      reader = Reader.new(folder)
      reader.write_files(page.blocks)
      needs_server = commands.any? { |block| Reader.needs_server?(block.code) }
      with_server(reader, needed: needs_server) do |pid|
        script = reader.script(commands, pid)
        out, err, status = run_program("sh", "-e", "-c", script, env: reader.environment, chdir: reader.folder,
                                                                 patience: PATIENCE)
        line = out[/.*^==line (\d+)$/m, 1]
        assert status.success?, "#{page.name}: the block in line #{line} failed (#{status})\n#{tail(out)}\n#{tail(err)}"
      end
    end
  end

  def tail(text) = text.size > MOST_OUTPUT ? "...#{text[-MOST_OUTPUT..]}" : text

  def with_server(reader, needed:, &block)
    return yield unless needed

    with_program(*reader.server, env: reader.environment, &block)
  end

  def syntax_error(page, block)
    RubyVM::InstructionSequence.compile(block.code)
    nil
  rescue SyntaxError => e
    "#{page.name}, line #{block.line}: #{e.message}"
  end
end
