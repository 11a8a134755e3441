# frozen_string_literal: true

require "test_helper"
require "yaml"
require_relative "docs/page"

# The lines of the pages on the first five minutes, as far as they run without their hosts.
class FirstMinutesTest < Minitest::Test
  # The end of the entry points that Rails 7.1 to 8.1 write.
  ENTRY_POINT = "#!/bin/bash -e\n\nexec \"${@}\"\n"
  JEMALLOC = Dir["/usr/lib/*/libjemalloc.so.2"].first
  # Says which allocator serves it, by the libraries it has mapped and by what culet's own doctor finds.
  WHICH = "$stdout.write(`culet doctor \#{$$}`[/^ok +allocator +(.*)/, 1])"

  def page(name) = Page.new("docs/guide/#{name}.md")

  def blocks(name, language) = page(name).blocks.select { |block| block.language == language }.map(&:code)

  # `culet` and `bundle` in a folder for PATH.
  def with_commands
    Dir.mktmpdir do |folder|
      script("#{folder}/culet", "exec #{culet_command.join(" ")} \"$@\"")
      script("#{folder}/bundle", "[ \"$1\" != exec ] || shift", "exec \"$@\"")
      yield folder, NEUTRAL.merge("PATH" => "#{folder}:#{ENV.fetch("PATH")}")
    end
  end

  def script(path, *lines)
    File.write(path, ["#!/bin/sh", *lines, ""].join("\n"))
    File.chmod(0o755, path)
  end

  def test_the_entry_point_of_rails_replaces_jemalloc
    old, new = blocks("rails-dockerfile", "diff").first.scan(/^[-+](.*)$/).flatten
    assert_includes ENTRY_POINT, old
    with_commands do |folder, env|
      File.write("#{folder}/docker-entrypoint", ENTRY_POINT.sub(old) { new })
      # The entry point of Rails preloads Debian's file, the Dockerfile of Rails 8.1 a link to it.
      File.symlink(JEMALLOC, "#{folder}/libjemalloc.so")
      [JEMALLOC, "#{folder}/libjemalloc.so"].each do |library|
        out, = assert_success("bash", "#{folder}/docker-entrypoint", RbConfig.ruby, "-e", WHICH, env: env.merge("LD_PRELOAD" => library))
        assert_match(/\Aculet serves malloc/, out)
      end
    end
  end

  def test_entry_points_of_images
    blocks("debian-image", "dockerfile").each do |lines|
      words = YAML.safe_load(lines[/^ENTRYPOINT (.*)/, 1])
      with_commands do |_, env|
        out, = assert_success(*words, RbConfig.ruby, "-e", WHICH, env: env)
        assert_match(/\Aculet serves malloc/, out)
      end
    end
  end

  def test_the_procfile_runs_its_commands_on_culet
    commands = YAML.safe_load(blocks("buildpack", "yaml").first)
    assert_equal %w[web worker], commands.keys
    commands.each_value do |command|
      with_commands do |folder, env|
        %w[puma sidekiq].each { |name| script("#{folder}/#{name}", "exec #{RbConfig.ruby} -e '#{WHICH}'") }
        out, = assert_success("sh", "-c", command, env: env)
        assert_match(/\Aculet serves malloc/, out)
      end
    end
  end

  def test_the_deployment_is_whole
    deployment = YAML.safe_load(blocks("kubernetes", "yaml").first)
    template = deployment.dig("spec", "template")
    assert_equal deployment.dig("spec", "selector", "matchLabels"), template.dig("metadata", "labels")
    container = template.dig("spec", "containers", 0)
    assert_equal %w[bundle exec culet run --], container["command"]
    assert(container["env"].all? { |variable| variable["value"].is_a?(String) })
  end

  def test_units_are_valid
    skip "there is no systemd-analyze here" unless system("sh", "-c", "command -v systemd-analyze", out: File::NULL)

    units = blocks("systemd", "ini").filter_map { |text| [text[%r{\A# /etc/systemd/system/(\S+)}, 1], text] if text.include?("[Unit]") }
    assert_equal %w[puma.service sidekiq.service], units.map(&:first)
    folder = new_folder
    # The reader's user, folder and programs are not here.
    units.each { |name, text| File.write("#{folder}/#{name}", text.gsub("/usr/local/bin/culet", "/bin/true").gsub("/srv/app", "/").sub("User=app", "User=root")) }
    out, err = assert_success("systemd-analyze", "verify", *units.map { |name, _| "#{folder}/#{name}" })
    assert_empty((out + err).lines.grep(/#{Regexp.escape(folder)}/))
  end
end
