# frozen_string_literal: true

require_relative "lib/culet/version"

Gem::Specification.new do |spec|
  spec.name = "culet"
  spec.version = Culet::VERSION
  spec.summary = "See why a Ruby process is big, fix it in one line, prove the gain"
  spec.description = "A memory allocator made for multi-threaded, forking Ruby servers (preloaded, plain C), " \
                     "and the tools that show what it saves against glibc, jemalloc, tcmalloc and mimalloc."
  spec.authors = ["The culet authors"]
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.homepage = Culet::HOMEPAGE
  spec.metadata = {
    "homepage_uri" => Culet::HOMEPAGE,
    "source_code_uri" => Culet::HOMEPAGE,
    "documentation_uri" => "#{Culet::HOMEPAGE}/tree/main/docs/guide",
    "changelog_uri" => "#{Culet::HOMEPAGE}/blob/main/CHANGELOG.md",
    "bug_tracker_uri" => "#{Culet::HOMEPAGE}/issues",
    "rubygems_mfa_required" => "true"
  }

  files = Dir["{lib,sig,ext,exe,workloads}/**/*", "man/*.1", "allocator/{Makefile,src/**/*,include/**/*}",
              "sampler/{Makefile,core/*,preload/*}", "replay/{Makefile,format.h,interposer/*,recorder/*,player/*}",
              "reader/{Makefile,format.h,layouts/*.h,src/**/*}", "part.mk",
              "boot/syscall_counter/{Makefile,syscall_counter.h,src/*}", "boot/{ext,lib}/**/*",
              "{README,CHANGELOG,SECURITY}.md", "LICENSE.txt", "docs/{README,json,known-issues,versioning}.md",
              "docs/guide/*.md", "fleet/*", "skills/**/*", base: __dir__]
  # Sorted, so that the same files make the same gem. What is compiled is no source, but for the empty library by which
  # culet/require learns Ruby's search order. DESIGN.md is for who changes the code.
  spec.files = files.sort.reject do |path|
    path == "lib/culet-cli.rb" ||
      (path.end_with?(".o", ".so", ".part", "mkmf.log", "DESIGN.md") && !path.include?("/search_order/")) ||
      File.directory?(File.join(__dir__, path))
  end
  spec.bindir = "exe"
  spec.executables = ["culet"]
  spec.extensions = ["ext/extconf.rb"]
  # gem install writes documentation unless told not to: here of the files that programs load.
  spec.rdoc_options = ["--exclude", "lib/culet/[^/]+/"]
  spec.extra_rdoc_files = Dir["boot/lib/{feature_index,require,unused}.rb", base: __dir__]

  # No gem: a server's bundle gets culet alone. What reports are drawn with are dependencies of culet-cli.
  spec.add_development_dependency "minitest", "~> 5.15"
  spec.add_development_dependency "rake", ">= 12.3", "< 14"
  spec.add_development_dependency "rspec", "~> 3.12"
  spec.add_development_dependency "victor", "~> 0.5"
end
