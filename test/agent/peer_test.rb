# frozen_string_literal: true

require "agent/agent_helper"

# Whom a process answers: root, and who could read its memory anyway.
class AgentPeerTest < Minitest::Test
  include AgentHelper

  # Two users that no machine has.
  USER = 54_321
  OTHER = 54_322
  # Becomes a user after all is loaded, and listens then. prctl(2) is called by its number.
  BECOME = <<~RUBY
    require "culet"
    def prctl(*words) = (_ = $VERBOSE; $VERBOSE = nil; syscall(RUBY_PLATFORM.start_with?("aarch64") ? 167 : 157, *words))
    SET_DUMPABLE = 4
    KEEP_CAPABILITIES = 8
    def become(user, group = user, saved_user: user, saved_group: group, dumpable: 1)
      Process::Sys.setresgid(group, group, saved_group)
      Process::Sys.setresuid(user, user, saved_user)
      prctl(SET_DUMPABLE, dumpable)
    end
  RUBY
  LISTEN = "Culet::Agent.start or abort; #{SAY_UP}; sleep".freeze

  def setup
    skip "only root can become another user" unless Process.euid.zero?
  end

  def test_the_same_user_is_answered
    with_process("become(#{USER})") { |pid| assert_equal "told", asked_by(USER, pid) }
  end

  def test_another_user_is_not
    with_process("become(#{USER})") { |pid| assert_match(/answers only its own user and root/, asked_by(OTHER, pid)) }
  end

  # The number of all users that have none.
  def test_the_overflow_user_is_not_answered_even_by_a_process_of_that_number
    with_process("become(#{NOBODY})") { |pid| assert_match(/cannot identify you/, asked_by(NOBODY, pid)) }
  end

  { "a saved user of root's" => "become(#{USER}, saved_user: 0)", "a saved group of root's" => "become(#{USER}, saved_group: 0)",
    "another group" => "become(#{USER}, #{OTHER})", "memory that may not be dumped" => "become(#{USER}, dumpable: 0)",
    "capabilities" => "prctl(KEEP_CAPABILITIES, 1); become(#{USER})" }.each do |what, script|
    define_method("test_a_process_with_#{what.tr(" ", "_")}_answers_root_alone") do
      with_process(script) do |pid|
        assert_match(/answers only root/, asked_by(USER, pid))
        assert ask(pid).fact("objects")["complete"]
      end
    end
  end

  # In a user namespace without numbers, the process and every user outside have the same one.
  def test_in_a_user_namespace_that_numbers_nobody
    _, _, status = run_program("unshare", "--user", "true")
    skip "user namespaces may not be made here" unless status.success?

    script = "become(#{USER}); exec('unshare', '--user', #{RbConfig.ruby.inspect}, '-w', '-I#{ROOT}/lib', '-rculet', '-e', #{LISTEN.inspect})"
    skip "#{ROOT} may not be read by other users" unless as_user(USER) { File.readable?("#{ROOT}/lib/culet.rb").to_s } == "true"

    with_program(RbConfig.ruby, "-I#{ROOT}/lib", "-e", "#{BECOME}#{script}", env: TestHelper::NEUTRAL.merge("HOME" => "/")) do |pid|
      assert_match(/cannot identify you/, asked_by(OTHER, pid))
    end
  end

  private

  def with_process(script, &block)
    with_program(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", "#{BECOME}#{script}; #{LISTEN}", env: TestHelper::NEUTRAL, &block)
  end

  # Without the class that usually asks, which may see by itself that it would be refused.
  def asked_by(user, pid)
    as_user(user) do
      name = File.read("/proc/net/unix")[%r{@(culet-agent/#{pid}/\S+)}, 1]
      Socket.unix("\0#{name}") do |socket|
        begin
          socket.write("culet-agent 1 data=0 limit_ms=5000 wait_ms=5000\n")
        rescue Errno::EPIPE
          nil # it is refused; the reason is there even so
        end
        line = socket.gets.to_s
        line.start_with?("ok ") ? "told" : line
      end
    end
  end
end
