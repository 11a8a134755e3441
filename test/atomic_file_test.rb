# frozen_string_literal: true

require "test_helper"
require "culet/system/atomic_file"

class AtomicFileTest < Minitest::Test
  def setup = @directory = new_folder

  def test_writes_and_replaces
    path = file("report")
    %w[first second].each do |content|
      Culet::AtomicFile.write(path, content)
      assert_equal content, File.read(path)
    end
    assert_equal %w[report], Dir.children(@directory)
  end

  def test_a_directory_and_a_missing_directory_are_refused_and_nothing_is_left
    [@directory, file("none/report")].each do |path|
      error = assert_raises(Culet::Error) { Culet::AtomicFile.write(path, "x") }
      assert_match(/\Acannot write #{Regexp.escape(path)}: /, error.message)
    end
    assert_empty Dir.children(@directory)
    refute_path_exists "#{@directory}.#{Process.pid}.part"
  end

  # A pipe in a directory of ours: what goes wrong here would otherwise replace a device of the machine.
  def test_a_pipe_is_written_to_and_stays_a_pipe
    path = file("pipe")
    File.mkfifo(path)
    reader = Thread.new { File.read(path) }
    Culet::AtomicFile.write(path, "through")
    assert_equal "through", reader.value
    assert File.pipe?(path)
  end

  def test_a_link_stays_a_link
    File.write(file("target"), "old")
    File.symlink("target", file("link"))
    Culet::AtomicFile.write(file("link"), "new")
    assert File.symlink?(file("link"))
    assert_equal "new", File.read(file("target"))
  end

  # A link beside the file, of the name that the new content has until it is whole.
  # `culet lib --link` makes links to the allocator, and an option names the wrong file easily.
  def test_a_program_or_library_is_not_replaced
    library, link = %w[libculet.so link].map { |name| file(name) }
    FileUtils.cp("/proc/self/exe", library)
    File.symlink(library, link)
    [library, link].product(%i[check start]) do |path, method|
      error = assert_raises(Culet::Error) { Culet::AtomicFile.public_send(method, path) }
      assert_equal "cannot write #{path}: #{library} is a program or library; choose another file", error.message
    end
  end

  def test_a_link_planted_beside_the_file_is_not_followed
    File.write(file("victim"), "kept")
    names = ["report.#{Process.pid}.part", "report.part"]
    names.each { |name| File.symlink("victim", file(name)) }
    Culet::AtomicFile.write(file("report"), "new")
    assert_equal %w[kept new], [File.read(file("victim")), File.read(file("report"))]
    assert(names.all? { |name| File.symlink?(file(name)) })
    assert_equal ["report", "victim", *names].sort, Dir.children(@directory).sort
  end

  def test_another_users_link_or_pipe_is_refused
    skip "only root can make files of another user" unless Process.euid.zero?

    File.chmod(0o1777, @directory)
    File.write(file("victim"), "kept")
    File.symlink("victim", file("link"))
    File.symlink("link", file("own"))
    File.mkfifo(file("pipe"))
    File.lchown(NOBODY, nil, file("link"), file("pipe"))
    %w[link own pipe].each do |name|
      [-> { Culet::AtomicFile.write(file(name), "new") }, -> { Culet::AtomicFile.check(file(name)) }].each do |attempt|
        error = assert_raises(Culet::Error, &attempt)
        assert_match(/\Acannot write #{file(name)}: .* is a (symbolic link|fifo) of another user; choose another file\z/, error.message)
      end
    end
    assert_equal "kept", File.read(file("victim"))
    assert_equal %w[link own pipe victim], Dir.children(@directory).sort
  end

  # A file that others may write to would have what is written next.
  def test_another_users_file_is_replaced_and_its_mode_is_not_kept
    skip "only root can make files of another user" unless Process.euid.zero?

    File.write(file("page"), "planted", perm: 0o666)
    File.chmod(0o666, file("page"))
    File.chown(NOBODY, nil, file("page"))
    Culet::AtomicFile.write(file("page"), "new", secret: true)
    assert_equal ["new", 0o600, 0], [File.read(file("page")), mode("page"), File.stat(file("page")).uid]
  end

  def test_modes
    with_umask(0o027) do
      Culet::AtomicFile.write(file("public"), "x")
      Culet::AtomicFile.write(file("secret"), "x", secret: true)
      assert_equal [0o640, 0o600], [mode("public"), mode("secret")]
      File.chmod(0o604, file("secret"), file("public"))
      %w[public secret].each { |name| Culet::AtomicFile.write(file(name), "y", secret: name == "secret") }
      assert_equal [0o604, 0o600], [mode("public"), mode("secret")]
    end
  end

  def test_this_process_own_descriptors_are_written_to
    script = 'require "culet/system/atomic_file"; ARGV.each { |path| Culet::AtomicFile.check(path); Culet::AtomicFile.write(path, "one\n") }; puts :last'
    words = [RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", script, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]
    out, err, = run_program(*words, env: NEUTRAL)
    assert_equal ["one\none\none\nlast\n", ""], [out, err]
    File.write(file("log"), "before\n")
    pid = spawn(NEUTRAL, *words, out: [file("log"), "a"])
    Process.wait(pid)
    assert_equal "before\none\none\none\nlast\n", File.read(file("log"))
    assert_equal ["log"], Dir.children(@directory)
  end

  def test_links_in_a_circle_and_links_to_nothing
    File.symlink("b", file("a"))
    File.symlink("a", file("b"))
    File.symlink("new", file("c"))
    error = assert_raises(Culet::Error) { Culet::AtomicFile.write(file("a"), "x") }
    assert_match(/\Acannot write #{file("a")}: too many levels of symbolic links/, error.message)
    Culet::AtomicFile.write(file("c"), "x")
    assert_equal ["x", true], [File.read(file("new")), File.symlink?(file("c"))]
  end

  NOBODY = 65_534

  private

  def mode(name) = File.stat(file(name)).mode & 0o777

  def with_umask(mask)
    before = File.umask(mask)
    yield
  ensure
    File.umask(before)
  end

  def file(name) = File.join(@directory, name)
end
