# frozen_string_literal: true

require "culet/system/executables"

# Tests of the other processor: with Debian's cross compiler and qemu's emulation.
module CrossTools
  CROSS = "aarch64-linux-gnu-gcc"

  def setup
    super
    skip_unless_all
    missing = [CROSS, "qemu-aarch64"].reject { |name| Culet::Executables.find(name) }
    skip "#{missing.join(" and ")} not installed" if missing.any?
    skip "this machine is one" if RbConfig::CONFIG["host_cpu"] == "aarch64"
  end
end
