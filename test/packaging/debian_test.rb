# frozen_string_literal: true

require "test_helper"
require "open3"
require_relative "../roots/in_tests"
require_relative "../roots/roots"

# The Debian package: built, installed, used and removed in a root of Debian.
class DebianTest < Minitest::Test
  include Roots::InTests

  BUILDS = %w[build-essential debhelper dpkg-dev ruby-dev ruby-chunky-png ruby-terminal-table].freeze
  # What belongs to the package, and what dpkg keeps about it, is gone after a purge; logs and caches stay.
  LIST = "find / -xdev ( -path /proc -o -path /mnt -o -path /dev -o -path /run -o -path /tmp -o -path /var/log -o -path /var/cache " \
         "-o -path /var/lib/dpkg/status* ) -prune -o -print"
  ROUTINE = <<~SH
    ruby -e 'require "culet/auto"; p Culet.native?, Culet.allocator[:name], Culet.trim_stats[:active]'
    LD_PRELOAD=libculet.so ruby --disable-gems -e 'require "culet"; p Culet.allocator.values_at(:name, :active)'
    culet run -- ruby -e 'require "culet"; p Culet.allocator[:active]'
    test -e "$(culet lib)" -a -e /usr/share/man/man1/culet-top.1.gz
    culet map --json "$$" > /dev/null
  SH

  def test_the_package_installs_works_and_leaves_nothing
    root = root("trixie", packages: BUILDS)
    share = new_folder
    copy(File.join(share, "culet"))
    root.run("sh", "-euc", "cd /mnt/culet && DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage -b -us -uc", share: share)
    package = Dir[File.join(share, "culet_*.deb")].first
    refute_nil package
    before = root.run(*LIST.split, share: share).lines.sort
    begin
      root.run("dpkg", "--install", "/mnt/#{File.basename(package)}", share: share)
      out = root.run("sh", "-euc", ROUTINE, share: share)
      assert_equal ["true", '"glibc"', "true", '["culet", true]', "true"], out.lines(chomp: true)
    ensure
      root.run("dpkg", "--purge", "culet", share: share)
    end
    assert_equal before, root.run(*LIST.split, share: share).lines.sort
  end

  def test_the_package_has_the_version_of_the_gem
    require "culet/version"
    assert_match(/\Aculet \(#{Regexp.escape(Culet::VERSION)}\) /, File.read("#{ROOT}/debian/changelog"))
  end

  private

  def copy(folder)
    names, status = Open3.capture2("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    assert_predicate status, :success?
    names.split("\0").each do |name|
      next unless File.exist?("#{ROOT}/#{name}")

      FileUtils.mkdir_p(File.dirname(File.join(folder, name)))
      FileUtils.cp("#{ROOT}/#{name}", File.join(folder, name), preserve: true)
    end
  end
end
