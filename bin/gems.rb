# frozen_string_literal: true

# Lets a Ruby process of this checkout use the gems that bin/setup installed
# into .gems. Done inside the process and not by `bundle exec`, because that
# would put itself into RUBYOPT, and so into every program `culet run` starts.
Gem.use_paths(Gem.dir, [*Dir[File.expand_path("../.gems/#{RUBY_ENGINE}/#{RbConfig::CONFIG["ruby_version"]}", __dir__)],
                        *Gem.path])
