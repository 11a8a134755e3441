# frozen_string_literal: true

require "test_helper"
require "culet/version"
require "culet/tools/profile/page"

# Profiles made up for the page.
module ProfilePageHelper
  Frame = Struct.new(:file, :line, :method, :gem, :library)
  Site = Struct.new(:frames, :bytes, :low_bytes, :high_bytes, :blocks, :samples, :variance, :class_name, :kind, :labels, keyword_init: true)
  Row = Struct.new(:name, :bytes, :low_bytes, :high_bytes, :blocks, :share)
  Recording = Struct.new(:name, :started_at, :taken_at)

  class Made
    attr_reader :sample_bytes, :recordings

    def initialize(views, name: "app.rb (4242)")
      @views = views
      @sample_bytes = 524_288
      @recordings = [Recording.new(name, Time.at(1_790_000_000), Time.at(1_790_000_090))]
    end

    def sites(view) = @views.fetch(view, [])
    def total(view) = row("all", sites(view), 1)
    def by(view, what)
      groups = sites(view).group_by { |site| what == :class ? site.class_name : site.frames.find(&:file).then { |frame| what == :gem ? frame&.gem || "application" : "#{frame&.file}:#{frame&.line}" } }
      groups.map { |name, list| row(name, list, sites(view)) }.sort_by { |one| -one.bytes }
    end

    def row(name, list, _all)
      bytes = list.sum(&:bytes)
      half = 1.96 * Math.sqrt(list.sum(&:variance))
      Row.new(name.to_s, bytes, [bytes - half, 0].max, bytes + half, list.sum(&:blocks), bytes / [sites_total, 1].max)
    end

    def sites_total = @sites_total ||= @views.values.map { |list| list.sum(&:bytes) }.max.to_f
  end

  APP = "/srv/shop/app"
  GEMS = "/usr/lib/ruby/gems/3.3.0/gems"

  def frame(method, file = nil, line = nil, gem: nil, library: nil) = Frame.new(file, line, method, gem, library)

  def site(frames, samples, size: 400, class_name: nil, labels: {})
    weight = 1 / (1 - Math.exp(-size / 524_288.0))
    Site.new(frames: frames, bytes: samples * weight * size, blocks: samples * weight, samples: samples, variance: samples * weight * (weight - 1) * size * size,
             class_name: class_name, kind: class_name ? :object : :malloc, labels: labels)
  end

  WORDS = %w[order invoice customer cart product payment shipment address coupon session report feed search upload avatar comment].freeze

  # A program like a Rails application: `count` sites under deep stacks.
  def large(count, seed: 1, growth: 1.0)
    random = Random.new(seed)
    base = [frame("main", "#{APP}/../bin/rails", 4), frame("Puma::Server#run", "#{GEMS}/puma-6.4.2/lib/puma/server.rb", 250, gem: "puma 6.4.2"),
            frame("Puma::ThreadPool#spawn_thread", "#{GEMS}/puma-6.4.2/lib/puma/thread_pool.rb", 155, gem: "puma 6.4.2")]
    middleware = Array.new(12) { |n| frame("#{%w[Rack Rails ActionDispatch][n % 3]}::#{%w[Logger Head Cookies Flash Static Runtime][n % 6]}#call", "#{GEMS}/#{n.odd? ? "rack-3.0.8/lib/rack" : "actionpack-7.1.2/lib/action_dispatch"}/m#{n}.rb", 20 + n, gem: n.odd? ? "rack 3.0.8" : "actionpack 7.1.2") }
    sites = Array.new(count) do |number|
      word = WORDS[(random.rand**2 * WORDS.size).to_i]
      stack = base + middleware + [frame("#{word.capitalize}sController##{%w[index show create update][number % 4]}", "#{APP}/controllers/#{word}s_controller.rb", 5 + (number % 40))]
      random.rand(1..6).times { |depth| stack << frame("#{word.capitalize}#{%w[Service Query Presenter Repository][depth % 4]}##{%w[call load build render each to_h][random.rand(6)]}", "#{APP}/models/#{word}_#{depth}.rb", random.rand(3..90)) }
      if random.rand < 0.6
        name = %w[activerecord activesupport json nokogiri redis][random.rand(5)]
        random.rand(1..5).times { |depth| stack << frame("#{name.capitalize}::#{%w[Base Relation Cache Parser Result][depth]}##{%w[exec load fetch parse decode][random.rand(5)]}", "#{GEMS}/#{name}-7.1.2/lib/#{name}/#{depth}.rb", random.rand(10..400), gem: "#{name} 7.1.2") }
      end
      stack << frame(["Array#map", "String#+", "Hash#[]=", "Array#push", "String#dup"][random.rand(5)]) if random.rand < 0.7
      klass = random.rand < 0.35 ? %w[String Hash Array Order Product Time][random.rand(6)] : nil
      unless klass
        stack << frame("sqlite3_exec", library: "libsqlite3.so.0.8.6") if random.rand < 0.15
        stack << frame(%w[ruby_xmalloc2 rb_str_resize ar_set st_insert][random.rand(4)], library: "libruby-3.3.so.3.3.0")
      end
      samples = [(random.rand**6 * 60).ceil, 1].max
      site(stack.reverse, samples, size: [40, 160, 640, 5_000, 200_000][random.rand(5)], class_name: klass, labels: number % 5 == 0 ? { "job" => "#{word.capitalize}Job" } : { "endpoint" => "#{word}s##{%w[index show create update][number % 4]}" })
    end
    keep = ->(share, factor = 1) { sites.select { random.rand < share }.map { |one| one.dup.tap { |copy| n = [(one.samples * factor * (0.6 + 0.8 * random.rand)).round, 1].max; copy.bytes *= n.fdiv(one.samples); copy.blocks *= n.fdiv(one.samples); copy.variance *= n.fdiv(one.samples); copy.samples = n } }.sort_by { |one| -one.bytes } }
    Made.new({ live: keep.(0.8, growth), allocated: keep.(1, 9), peak: keep.(0.9, 1.2 * growth), growth: keep.(0.15, growth) })
  end

  def small
    frames = [frame("main", "/home/me/leak.rb", 12)]
    Made.new({ live: [site([frame("st_insert", library: "libruby-3.1.so.3.1.2"), frame("Hash#[]="), frame("Cache#store", "/home/me/leak.rb", 4), *frames], 40, size: 64),
                      site([frame("String#*"), frame("Cache#value", "/home/me/leak.rb", 8), *frames], 9, size: 40, class_name: "String"),
                      site([frame("ruby_init", library: "libruby-3.1.so.3.1.2")], 2)],
               allocated: [site([frame("String#*"), frame("Cache#value", "/home/me/leak.rb", 8), *frames], 90, size: 40, class_name: "String")], peak: [] }, name: "leak.rb (77)")
  end
end
