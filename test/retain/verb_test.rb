# frozen_string_literal: true

require_relative "retain_helper"
require "socket"

# The verb on real processes, commands and dumps.
class RetainVerbTest < Minitest::Test
  include RetainHelper

  def test_wrong_usage
    { [] => /no process given/, ["1", "--", "true"] => /a process or a command, not both/, ["--"] => /no command given/, ["1", "--top", "0"] => /--top takes a whole number/,
      ["1", "--path", "here"] => /--path takes an address/, ["1", "--class", "a b"] => /--class takes the name of a class/,
      ["1", "--class", "A", "--path", "0x1"] => /cannot be combined/, ["1", "--for", "3s"] => /--for needs --growth/, ["--growth", "--", "true"] => /running process/,
      ["1", "--growth", "--by", "gem"] => /--growth has its own list/, %w[1 2 --html x.html] => /--html is about one process/,
      ["1", "--by", "magic"] => /invalid argument/ }.each { |words, sentence| assert_refused(sentence, *words, status: 2) }
  end

  def test_a_constant_keeps_its_pages
    with_agent(KEEPS + WAITING) do |pid|
      text = report(pid)
      assert_match(/^1\. .* MB \(.* %\), [\d,]+ objects: constant Shop::CACHE \(.*app\.rb:3\)$/, text)
      assert_match(/^   Shop::CACHE -> Hash \[String\] -> Shop::Page \S+ -> String$/, text)
      assert_match(/^   [\d,]+ String .*; 5,000 Shop::Page/, text)
      assert_match(/note: The process stood still for .* ms/, text)
      refute_includes text, "GET /a", "texts stay in the process"
    end
  end

  def test_the_document_adds_up_and_has_the_keys_of_the_contract
    with_agent(KEEPS + WAITING) do |pid|
      found = retain(pid)
      assert_equal found["total_bytes"], [*found["holders"], *found["sets"], found["other_holders"], found["other_sets"]].sum { |one| one["bytes"] }
      one = row(found, "Shop::CACHE")
      assert_equal [found["holders"].first, "constant", 3], [one, one["kind"], one["line"]]
      assert_operator one["bytes"], :>, 5_000 * 400
      assert_equal "Shop::CACHE", one["path"].first
      assert_operator one["objects"], :>=, 15_000
    end
  end

  def test_texts_by_content_and_private_files
    with_agent(KEEPS + WAITING) do |pid|
      Dir.mktmpdir do |folder|
        files = %w[page.html told.txt].map { |name| File.join(folder, name) }
        assert_culet_success("retain", pid, "--content", "--html", files[0], "--out", files[1], env: TestHelper::NEUTRAL)
        assert_match(%r{Shop::CACHE -> Hash -> "GET /a/\d+" -> Shop::Page}, File.read(files[1]))
        assert_equal [0o600, 0o600], files.map { |path| File.stat(path).mode & 0o777 }
      end
    end
  end

  def test_two_registries_are_a_set
    code = "USERS = []\nBY_NAME = {}\n3_000.times { |n| one = 'user %d ' % n * 50; USERS << one; BY_NAME[n] = one }\n"
    with_agent(code + WAITING) do |pid|
      set = retain(pid)["sets"].first
      assert_equal %w[BY_NAME USERS], set["names"].sort
      assert_operator set["bytes"], :>, 3_000 * 400
      assert_match(/^1\. .*: (?:USERS and BY_NAME|BY_NAME and USERS) together; release from both$/, report(pid))
    end
  end

  def test_a_class_and_an_object
    with_agent(KEEPS + WAITING) do |pid|
      found = retain(pid, "--class", "Shop::Page")["selected"]
      assert_equal [5_000, "Shop::CACHE", 5_000], [found["objects"], found["holders"].first["name"], found["holders"].first["objects"]]
      assert_match(/Shop::Page: 5,000 instances/, report(pid, "--class", "Shop::Page"))
      strings = retain(pid, "--class", "String")["selected"]["holders"].map { |one| one["bytes"] }
      assert_equal strings.max(10), strings.first(10)
      assert_match(/no instance of Missing/, report(pid, "--class", "Missing"))
      address = row(retain(pid), "Shop::CACHE")["address"]
      one = retain(pid, "--path", address)["selected"]
      assert_equal ["Hash", ["Shop::CACHE"]], [one["class"], one["holders"].map { |keeper| keeper["name"] }]
      assert_operator one["retained_bytes"], :>, 5_000 * 400
    end
  end

  def test_by_class_and_gem
    with_agent(KEEPS + WAITING) do |pid|
      assert_match(/^String .* constant Shop::CACHE/, report(pid, "--by", "class"))
      assert_match(/^the program +[\d.]+ MB/, report(pid, "--by", "gem"))
      assert_match(/^Shop::Page +5,000/, report(pid, "--classes"))
    end
  end

  def test_duplicates
    code = "TEXTS = Array.new(2_000) { 'a text of which there are two' + ' thousand copies' }\n"
    with_agent(code + WAITING) do |pid|
      one = retain(pid, "--duplicates")["duplicates"].max_by { |row| row["copies"] }
      assert_equal [2_000, 45, nil, ["TEXTS"]], [one["copies"], one["length_bytes"], one["content"], one["holders"].map { |keeper| keeper["name"] }]
      assert_match(/^"a text of which there are two thousand copies" +2,000/, report(pid, "--duplicates", "--content"))
    end
  end

  # A slice has its bytes in another String, and so has the String that it was taken from.
  def test_a_slice_is_no_duplicate
    code = "WHOLE = +''\n500.times { |i| WHOLE << i.to_s * 100 }\nSLICES = Array.new(50) { WHOLE[5..] }\n"
    with_agent(code + WAITING) do |pid|
      assert_empty(retain(pid, "--duplicates")["duplicates"].select { |row| row["length_bytes"] > 50_000 })
    end
  end

  def test_a_class_with_a_name_beyond_ascii
    with_agent("module Größe; Ωmega = Struct.new(:text); end\nKEPT = Array.new(3) { Größe::Ωmega.new('x') }\n#{WAITING}") do |pid|
      assert_equal 3, retain(pid, "--class", "Größe::Ωmega")["selected"]["objects"]
    end
  end

  # Two of one kind: a name of both is refused with their numbers, the number of one is that alone.
  def test_a_name_is_a_process_and_its_children
    name = "keeper#{Process.pid}"
    tree = "$0 = '#{name} master'\n#{KEEPS}fork { $0 = '#{name} worker'; sleep }\n"
    with_agent(tree + WAITING) do |pid|
      found = retain(name)["processes"]
      assert_equal [[pid, "process #{pid} (#{name} master)"], "(#{name} worker)"], [found[0].values_at("pid", "name"), found[1]["name"][/\(.*/]]
      assert_equal %w[Shop::CACHE Shop::CACHE], found.map { |one| one["holders"].first["name"] }
      with_agent(tree + WAITING) do
        _, err, status = run_culet("retain", name, env: TestHelper::NEUTRAL)
        assert_equal 1, status.exitstatus
        assert_match(/\Aculet: "#{name}" matches 2 process trees:\n/, err)
      end
    end
  end

  def test_several_processes
    2.times.inject(->(pids) { several(pids) }) do |inner, _|
      ->(pids) { with_agent(KEEPS + WAITING) { |pid| inner.call([*pids, pid]) } }
    end.call([])
  end

  def test_a_dump
    Dir.mktmpdir do |folder|
      path = dump(folder, KEEPS)
      found = retain(path)
      assert_equal ["dump", path], found.values_at("source", "name")
      assert_equal found["total_bytes"], [*found["holders"], *found["sets"], found["other_holders"], found["other_sets"]].sum { |one| one["bytes"] }
      assert_operator found["total_bytes"], :>, 5_000 * 400
      refute_empty report(path)
      page = File.join(folder, "page.html")
      report(path, "--html", page)
      assert_operator File.size(page), :>, 10_000
    end
  end

  def test_a_command_at_its_end
    Dir.mktmpdir do |folder|
      path = File.join(folder, "job.rb")
      File.write(path, "#{KEEPS}at_exit { Shop::LATE = 'late ' * 100_000 }\nputs :done\nexit 3")
      out, err, status = run_culet("retain", "--json", "--", RbConfig.ruby, path, env: TestHelper::NEUTRAL)
      assert_equal 3, status.exitstatus, err
      found = JSON.parse(out)
      assert_equal "Shop::CACHE", found["holders"].first["name"]
      row(found, "Shop::LATE") # the program's own handlers have run
      assert_equal ["done\n", "culet: the command ended with status 3\n"], err.lines
    end
  end

  # Only the command's own process is reported where several end; each goes on once it has been looked at.
  def test_a_command_that_forks
    script = "#{KEEPS}3.times { fork { } }; Process.waitall; puts :done"
    out, err = assert_culet_success("retain", "--json", "--", RbConfig.ruby, "-e", script, env: TestHelper::NEUTRAL)
    assert_equal "Shop::CACHE", JSON.parse(out)["holders"].first["name"]
    assert_includes err, "culet: 3 more Ruby processes of the command ended; the report covers one\n"
  end

  def test_a_command_without_ruby
    assert_refused(/no Ruby process could be looked at: true ran none/, "--", "true")
    assert_refused(/no Ruby process could be looked at: false ran none/, "--", "false")
    assert_refused(/cannot run|no command|there is no/, "--", "/nonexistent/program", status: 127)
  end

  def test_trouble_is_one_sentence
    assert_refused(/there is no process 4194304|no process/, "4194304")
    with_program(RbConfig.ruby, "-e", TestHelper::WAITING, env: TestHelper::NEUTRAL) { |pid| assert_refused(/process #{pid} has no agent; start it with RUBYOPT=/, pid) }
    with_program("sh", "-c", "echo up; sleep 1000 & wait", env: TestHelper::NEUTRAL) { |pid| assert_refused(/process #{pid} has no agent/, pid) }
    assert_refused(/there is no file/, "./absent.json")
  end

  def test_a_stopped_process
    with_agent(WAITING) do |pid|
      stop(pid)
      assert_refused(/process #{pid} is stopped; continue it first/, pid)
    ensure
      Process.kill(:CONT, pid)
    end
  end

  def test_damaged_dumps_are_one_sentence
    Dir.mktmpdir do |folder|
      whole = dump(folder, KEEPS)
      { "cut" => File.binread(whole, File.size(whole) / 2), "empty" => "", "text" => "hello\n" * 1_000, "zeros" => "\0" * 100_000 }.each do |name, content|
        path = File.join(folder, "#{name}.json")
        File.binwrite(path, content)
        assert_refused(/#{name}\.json/, path)
      end
    end
  end

  # Ruby's singleton classes end in one that is its own class; a dump may say what it likes.
  def test_singleton_classes_in_a_circle
    Dir.mktmpdir do |folder|
      path = File.join(folder, "circle.json")
      File.write(path, <<~DUMP)
        {"type":"ROOT", "root":"vm", "references":["0x1000"]}
        {"address":"0x1000", "type":"CLASS", "class":"0x2000", "name":"Shop", "memsize":400}
        {"address":"0x2000", "type":"CLASS", "class":"0x3000", "singleton":true, "references":["0x4000"], "memsize":400}
        {"address":"0x3000", "type":"CLASS", "class":"0x2000", "singleton":true, "memsize":400}
        {"address":"0x4000", "type":"OBJECT", "class":"0x1000", "memsize":4000}
      DUMP
      assert_equal 5_200, retain(path)["total_bytes"]
    end
  end

  private

  def several(pids)
    documents = retain(*pids)["processes"]
    assert_equal pids, documents.map { |one| one["pid"] }
    text = report(*pids)
    pids.each { |pid| assert_match(/^process #{pid} \(.*app\.rb\): /, text) }
    out, err, status = run_culet("retain", *pids, Process.pid, env: TestHelper::NEUTRAL)
    assert_predicate status, :success?, "those that answer are reported: #{err}"
    assert_match(/culet: process #{Process.pid} has no agent/, err)
    assert_match(/^process #{pids.first} \(/, out)
  end
end
