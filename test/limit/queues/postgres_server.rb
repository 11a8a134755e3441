# frozen_string_literal: true

require "etc"
require "fileutils"
require "culet/system/clock"

# A PostgreSQL for one test, which nobody else can reach: it listens on a socket in a folder of its own.
class PostgresServer
  START_SECONDS = 120
  # PostgreSQL refuses to run as root.
  USER = "nobody"

  # @return [String, nil] the folder of its programs; Debian has it outside of PATH
  def self.programs
    [*Dir["/usr/lib/postgresql/*/bin"].reverse, *ENV.fetch("PATH").split(":")].find do |folder|
      File.executable?(File.join(folder, "initdb")) && File.executable?(File.join(folder, "postgres"))
    end
  end

  # @return [String]
  attr_reader :folder

  # @return [String]
  attr_reader :user

  # @param folder [String] an empty folder
  def initialize(folder)
    @folder = folder
    @user = Process.uid.zero? ? USER : Etc.getpwuid.name
    FileUtils.chown(USER, nil, folder) if Process.uid.zero?
    data = File.join(folder, "data")
    run("initdb", "--auth", "trust", "--no-sync", "--username", user, "--pgdata", data)
    @pid = Process.spawn(*as_user("postgres"), "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off",
                         in: File::NULL, out: log, err: log, pgroup: true, chdir: folder)
    await
  end

  # @return [Hash{String => Object}] for database.yml
  def settings = { "adapter" => "postgresql", "host" => folder, "username" => user, "database" => "postgres" }

  def stop
    Process.kill("INT", @pid) # its shutdown that does not wait for clients
    Process.wait(@pid)
  end

  private

  def log = File.join(folder, "log")

  def as_user(program)
    path = File.join(self.class.programs, program)
    Process.uid.zero? ? ["setpriv", "--reuid", USER, "--clear-groups", path] : [path]
  end

  def run(program, *words)
    return if system(*as_user(program), *words, in: File::NULL, out: [log, "a"], err: [log, "a"], chdir: folder)

    raise "#{program} failed: #{File.read(log)}"
  end

  def await
    deadline = Culet::Clock.now + START_SECONDS
    until File.socket?(File.join(folder, ".s.PGSQL.5432")) && File.read(log).include?("ready to accept connections")
      raise "PostgreSQL does not answer: #{File.read(log)}" if Culet::Clock.now > deadline

      sleep 0.05
    end
  rescue RuntimeError
    stop
    raise
  end
end
