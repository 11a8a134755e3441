# frozen_string_literal: true

require "servers/server_helper"
require_relative "../../packaging/source_gem"
require_relative "../roots/in_tests"
require_relative "page"
require_relative "podman"

# The units of the guide as it has them, under a systemd that is process 1 of a container: started, reloaded, killed,
# stopped, and taken out again.
class DocsSystemdTest < Minitest::Test
  PAGE = Page.new("docs/guide/systemd.md")
  ON_CULET = "/usr/local/bin/culet run -- "
  # A machine has procps, and with it /bin/kill.
  PACKAGES = %w[procps redis-server ruby-bundler ruby-dev systemd].freeze
  GEMS = %w[puma rack sidekiq].freeze
  IMAGE = <<~TEXT.freeze
    FROM plain
    COPY app /srv/app
    RUN gem install --no-document culet-cli #{GEMS.join(" ")} && ln -s /usr/bin/bundle /usr/local/bin \\
        && useradd app && cd /srv/app && bundle install --local && chown -R app .
    CMD ["/lib/systemd/systemd"]
  TEXT
  APP = {
    "Gemfile" => ["source 'https://rubygems.org'", *GEMS.map { |name| "gem '#{name}'" }, ""].join("\n"),
    "config.ru" => "run ->(_) { [200, {}, [Process.ppid.to_s]] }\n",
    "config/puma.rb" => "workers 2\npreload_app! false\n",
    "config/sidekiq.yml" => ":require: ./job.rb\n",
    "job.rb" => <<~RUBY
      class Job
        include Sidekiq::Job

        def perform(path) = File.write(path, Process.pid)
      end
    RUBY
  }.freeze

  include ServerHelper
  include Roots::InTests

  def setup
    root = root("trixie", packages: PACKAGES)
    @folder = new_folder
    @podman = Podman.new(@folder)
    cached = "ruby/#{RbConfig::CONFIG["ruby_version"]}/cache/*.gem"
    @podman.import("plain", root, [*Packaging::SourceGem.all(@folder), *Dir["#{ROOT}/.gems/#{cached}", "#{bundle.environment.fetch("BUNDLE_PATH")}/#{cached}"]])
    APP.each { |name, text| write_file("#{@folder}/context/app/#{name}", text) }
    @podman.build("units", IMAGE, "#{@folder}/context")
  rescue Podman::Missing => e
    skip e.message
  end

  def teardown = @podman&.close

  def test_the_units
    @podman.with_container("units", "--systemd=always", "--cap-add", "SYS_PTRACE", network: "none") do |container|
      @container = container
      assert_settles("the machine is up") { run_program(*@podman.command("exec", container, "systemctl", "is-active", "multi-user.target")).first == "active\n" }
      check_puma
      check_drop_in
      check_sidekiq
    end
  end

  private

  def check_puma
    write("/etc/systemd/system/puma.service", unit("puma"))
    start("puma")
    assert_serves "culet", "puma"
    assert_looks "puma"
    assert_reloads
    assert_restarts("puma") { say("kill", "-KILL", main("puma")) }
    assert_watched "puma"
    # Whoever is stopped sends no sign of life.
    assert_restarts("puma") { say("kill", "-STOP", main("puma")) }
    assert_stops "puma"
    say("sed", "-i", "s:#{ON_CULET}::", "/etc/systemd/system/puma.service")
    start("puma")
    assert_serves "glibc", "puma"
    say("rm", "/etc/systemd/system/puma.service")
  end

  # Of a unit that a package owns. The application is preloaded, so that a reload is a hot restart.
  def check_drop_in
    write("/lib/systemd/system/puma.service", unit("puma").sub(ON_CULET, ""))
    write("/srv/app/config/puma.rb", "workers 2\npreload_app!\n")
    start("puma")
    assert_serves "glibc", "puma"
    say("sh", "-c", 'printf %s "$1" | systemctl edit --stdin puma.service', "sh", blocks("ini").last)
    start("puma")
    assert_serves "culet", "puma"
    assert_reloads
    assert_serves "culet", "puma"
    say(*PAGE.text[/`(systemctl revert puma.service)`/, 1].split)
    start("puma")
    assert_serves "glibc", "puma"
    assert_stops "puma"
  end

  def check_sidekiq
    write("/etc/systemd/system/sidekiq.service", unit("sidekiq"))
    start("sidekiq")
    assert_serves "culet", "sidekiq"
    assert_looks "sidekiq"
    assert_watched "sidekiq"
    say("sh", "-euc", "cd /srv/app && bundle exec ruby -rsidekiq -r./job.rb -e 'Job.perform_async(%(/srv/app/done))'")
    assert_settles("a job is done") { said("cat", "/srv/app/done") == main("sidekiq") }
    assert_restarts("sidekiq") { say("kill", "-KILL", main("sidekiq")) }
    say("systemctl", "reload", "sidekiq")
    assert_settles("it takes no more jobs") { say("journalctl", "--unit", "sidekiq").include?("no longer accepting new work") }
    assert_stops "sidekiq"
  end

  def blocks(language) = PAGE.blocks.select { |block| block.language == language }.map(&:code)

  def unit(name) = blocks("ini").find { |text| text.start_with?("# /etc/systemd/system/#{name}.service") }

  # By the page's lines. With Type=notify they return once the server has said that it is ready.
  def start(name)
    run_block("systemctl restart", name)
    assert_equal %w[active running], [property(name, "ActiveState"), property(name, "SubState")]
  end

  # The page has Puma's names.
  def run_block(words, name) = say("sh", "-euc", blocks("sh").find { |text| text.include?(words) }.gsub("puma", name))

  # The doctor ends with 1 where it has found something bad, as on glibc.
  def assert_serves(allocator, name) = assert_match(/^\S+ +allocator +#{allocator} serves malloc/, said("culet", "doctor", name))

  # The page's commands, and its first one as the service's user.
  def assert_looks(name)
    assert_match(/^malloc: culet/, run_block("culet report", name))
    assert_match(/^MainPID=#{main(name)}$/, run_block("journalctl", name))
    assert_match(/^Process #{main(name)} /, say("runuser", "-u", "app", "--", "culet", "doctor", name))
  end

  # Other workers of the same master.
  def assert_reloads
    before = [main("puma"), *workers]
    assert_equal 3, before.size
    say("systemctl", "reload", "puma")
    assert_settles("other workers") { workers.size == 2 && !workers.intersect?(before) }
    assert_equal before.first, main("puma")
    assert_equal before.first, say("ruby", "-rnet/http", "-e", "print Net::HTTP.get(URI('http://127.0.0.1:9292/'))")
  end

  def workers = said("ps", "--no-headers", "--ppid", main("puma"), "-o", "pid").split

  def assert_restarts(name)
    before = [main(name), property(name, "NRestarts").to_i]
    yield
    assert_settles("#{name} is started again") { property(name, "NRestarts").to_i == before.last + 1 && property(name, "ActiveState") == "active" }
    refute_equal before.first, main(name)
    assert_serves "culet", name
  end

  def assert_watched(name)
    before = property(name, "WatchdogTimestampMonotonic").to_i
    assert_operator before, :>, 0
    assert_settles("a sign of life") { property(name, "WatchdogTimestampMonotonic").to_i > before }
  end

  # Whoever does not end in time has the result "timeout".
  def assert_stops(name)
    say("systemctl", "stop", name)
    assert_equal %w[inactive success], [property(name, "ActiveState"), property(name, "Result")]
  end

  # @return [String] number of the unit's process
  def main(name) = property(name, "MainPID")

  def property(name, property) = say("systemctl", "show", "--value", "--property", property, name).chomp

  # @return [String] what a command prints inside; it must not fail
  def say(*words) = @podman.podman("exec", @container, *words)

  # @return [String] what a command prints inside, failed or not
  def said(*words) = run_program(*@podman.command("exec", @container, *words)).first

  def write(path, text) = say("sh", "-c", 'printf %s "$2" >"$1"', "sh", path, text)

  def write_file(path, text)
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, text)
  end
end
